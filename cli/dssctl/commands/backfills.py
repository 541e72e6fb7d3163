"""``dssctl backfills``: rows of files as records of a topic."""

from pathlib import Path
from typing import Annotated

import typer

from dssctl.connection import ask
from dssctl.driving import (
    Drive,
    JobName,
    MakingAndTelling,
    Rate,
    Target,
    Wait,
    make_job,
    size_or_usual,
)
from dssctl.engines import LOCAL, Conf, EngineName, Master, chosen
from dssctl.output import note
from dssctl.tree import noun, settings_of

app = noun("backfills")


@app.command(cls=MakingAndTelling)
def create(
    context: typer.Context,
    name: JobName,
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Parquet, CSV or JSON lines.")
    ],
    target: Target,
    key: Annotated[str | None, typer.Option(metavar="COLUMN", help="The key's.")] = None,
    null_key: Annotated[
        str, typer.Option(metavar="WAY", help="A row without a key: refuse, or keyless.")
    ] = "refuse",
    subject: Annotated[
        str | None,
        typer.Option(metavar="TEMPLATE", help="flights/{origin}/{carrier}; the topic's name."),
    ] = None,
    time_column: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The record's time; now where absent or null."),
    ] = None,
    payload: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Of bytes or text; else all columns make one JSON."),
    ] = None,
    order: Annotated[
        str | None, typer.Option(metavar="COLUMNS", help="Sort all rows by them: date,hour.")
    ] = None,
    rejects: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Takes rows that make no record, with file and row."),
    ] = None,
    rate: Rate = None,
    drive: Drive = True,
    engine: EngineName = None,
    master: Master = None,
    conf: Conf = None,
    wait: Wait = False,
) -> None:
    """Make records of the rows of files, each exactly once, in the order of their keys."""
    from dss_bulk.backfill_work import BackfillParams, chunks_of, looked_through, rows_refused
    from dss_bulk.inputs import Inputs, size_of
    from dss_bulk.rows import NULL_KEYS, RowRule
    from dss_client.changes import CreateJob

    if null_key not in NULL_KEYS:
        raise typer.BadParameter(f"--null-key is one of {', '.join(NULL_KEYS)}.")
    rate_bytes_s = size_or_usual(rate)
    settings = settings_of(context)
    columns = tuple(order.split(",")) if order else ()
    rule = RowRule(target, key, null_key, subject, time_column, payload, columns)
    topic = ask(settings, lambda client: client.topics.describe(target))
    driver = chosen(settings, engine, master, conf, size_of(files), starts=drive)
    if driver.name == LOCAL:
        inputs, look = looked_through(files, rule, topic.patterns)
        if look.rejects and rejects is None:
            raise rows_refused(look.rejects)
        made = f"{inputs.rows:,} rows make {look.records:,} records"
        note(settings, f"{made}, {len(look.rejects):,} are rejected")
    else:
        inputs = Inputs.looked_at(files, rule)
        note(settings, f"{inputs.rows:,} rows; the driver looks through them before it publishes")
    folder = None if rejects is None else str(rejects.resolve())
    change = CreateJob(
        name,
        "backfill",
        target=target,
        rate_bytes_s=rate_bytes_s,
        params=BackfillParams(rule, inputs.files, folder).to_json(),
        inputs=chunks_of(inputs),
    )
    make_job(context, change, driver, drive=drive, wait=wait)
