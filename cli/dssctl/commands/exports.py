"""``dssctl exports``: records of a topic as Parquet files."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
from dssctl.output import note
from dssctl.tree import noun, settings_of

if TYPE_CHECKING:
    from dss_client.changes import CreateJob

app = noun("exports")


@app.command(cls=MakingAndTelling)
def create(
    context: typer.Context,
    name: JobName,
    source: Source,
    folder: Annotated[Path, typer.Option("--to", metavar="FOLDER", help="Of its own.")],
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
    resolved = _resolved(context, change, folder.resolve())
    if resolved is None:
        note(settings, f"nothing of {source} is new since the last export to {folder}")
        return
    make_job(context, resolved, driver, drive=drive, wait=wait)


def _resolved(context: typer.Context, change: "CreateJob", folder: Path) -> "CreateJob | None":
    """The export of what the folder does not have yet; None where it has all.

    Raises:
        ExportBroken: the folder holds something else.
        DssError: it cannot be planned.
    """
    from dss_bulk.export import ExportRun
    from dss_bulk.export_work import ExportParams

    settings = settings_of(context)
    topic = ask(settings, lambda client: client.topics.describe(change.source))
    run = ExportRun(folder, topic.name, topic.topic_id, change.name)
    planned = ask(settings, lambda client: client.operations.plan(change)).change
    assert isinstance(planned, type(change)), "a plan of a job is one of a job"
    ranges = tuple(
        replace(each, start=max(each.start, run.ends_before.get(each.stream, 0)))
        for each in planned.ranges
    )
    left = tuple(each for each in ranges if each.start < each.end)
    if not left:
        return None
    params = ExportParams(str(folder), topic.topic_id, {each.stream: each.end for each in left})
    return replace(change, ranges=left, params=params.to_json())
