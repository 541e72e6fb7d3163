"""``dssctl exports``: records of a topic as Parquet files."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dss_core.counted import bytes_text, counted
from dssctl.connection import ask
from dssctl.driving import (
    Chunk,
    DeadLetters,
    Drive,
    End,
    JobName,
    MakingAndTelling,
    Only,
    Source,
    Start,
    Wait,
    make_job,
    size_or_usual,
    source_bytes,
    time_us,
)
from dssctl.engines import Conf, EngineName, Master, asks_size, chosen
from dssctl.output import note, note_condition
from dssctl.tree import noun, settings_of

if TYPE_CHECKING:
    from dss_client import Client

app = noun("exports")


@app.command(cls=MakingAndTelling)
def create(
    context: typer.Context,
    name: JobName,
    source: Source,
    folder: Annotated[Path, typer.Option("--to", metavar="FOLDER", help="A folder of its own.")],
    dead_letters: DeadLetters = None,
    start: Start = None,
    end: End = None,
    only: Only = None,
    chunk: Chunk = None,
    drive: Drive = True,
    engine: EngineName = None,
    master: Master = None,
    conf: Conf = None,
    wait: Wait = False,
) -> None:
    """Write records as Parquet, by date and hour; a second export takes only what is new.

    Each export is a folder run=N, which appears at once when all of it is there.
    """
    from dss_bulk.next_export import next_export
    from dss_client.changes import CreateJob

    change = CreateJob(
        name,
        "export",
        source=source,
        dead_letters=dead_letters or "",
        start_us=time_us(start),
        end_us=time_us(end),
        filter=only or "",
        chunk_bytes=size_or_usual(chunk),
    )
    settings = settings_of(context)
    size = source_bytes(settings, change) if asks_size(settings, engine) else None
    driver = chosen(settings, engine, master, conf, size, starts=drive)
    resolved = ask(settings, lambda client: next_export(client, change, folder.resolve()))
    for condition in resolved.told:
        note_condition(settings, condition)
    if resolved.change is None:
        if not settings.change.dry_run:
            resolved.run.note(resolved.noted)
        what = f"dead of {source} in {dead_letters}" if dead_letters else f"of {source}"
        note(settings, f"nothing {what} is new since the last export to {folder}")
        return
    note(settings, f"it writes to {folder}, as a run of its own")
    make_job(context, resolved.change, driver, drive=drive, wait=wait)
    if wait and not settings.change.dry_run:
        note(settings, ask(settings, lambda client: _where_it_is(client, name)))


async def _where_it_is(client: "Client", name: str) -> str:
    """The last chunk of an export has the result of all of them."""
    job = await client.jobs.get(name)
    after = job.chunks - 2 if job.chunks > 1 else None
    results = [chunk.result async for chunk in client.jobs.chunks(name, after=after)]
    said = json.loads(results[-1].output) if results and results[-1] else {}
    if "bytes" not in said:
        return f"{counted(job.records, 'record')} were exported"
    return f"{counted(job.records, 'record')}, {bytes_text(said['bytes'])}, in {said['folder']}"
