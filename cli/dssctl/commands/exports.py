"""``dssctl exports``: records of a topic as Parquet files."""

from pathlib import Path
from typing import Annotated

import typer

from dssctl.connection import ask
from dssctl.driving import (
    Chunk,
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

app = noun("exports")


@app.command(cls=MakingAndTelling)
def create(
    context: typer.Context,
    name: JobName,
    source: Source,
    folder: Annotated[Path, typer.Option("--to", metavar="FOLDER", help="A folder of its own.")],
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
        start_us=time_us(start),
        end_us=time_us(end),
        filter=only or "",
        chunk_bytes=size_or_usual(chunk),
    )
    settings = settings_of(context)
    size = source_bytes(settings, change) if asks_size(settings, engine) else None
    driver = chosen(settings, engine, master, conf, size, starts=drive)
    resolved = ask(settings, lambda client: next_export(client, change, folder.resolve()))
    for condition in resolved.lost:
        note_condition(settings, condition)
    if resolved.change is None:
        note(settings, f"nothing of {source} is new since the last export to {folder}")
        return
    make_job(context, resolved.change, driver, drive=drive, wait=wait)
