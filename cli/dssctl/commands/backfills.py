"""``dssctl backfills``: rows of files as records of a topic."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dss_core.counted import counted
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
from dssctl.engines import LOCAL, Conf, Engine, EngineName, Master, chosen
from dssctl.output import note
from dssctl.settings import Settings
from dssctl.tree import noun, settings_of

if TYPE_CHECKING:
    from dss_bulk.inputs import Inputs
    from dss_bulk.row_rule import RowRule

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
        typer.Option(metavar="COLUMN", help="Else the line of JSON, or all columns as a JSON."),
    ] = None,
    types: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=TYPE|FILE",
            help="Of a column, else text: n=int64, t=timestamp[us]; a FILE has one a line.",
        ),
    ] = None,
    order: Annotated[
        str | None, typer.Option(metavar="COLUMNS", help="Sort all rows by them: date,hour.")
    ] = None,
    rejects: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="For rows that make no record, with file and row."),
    ] = None,
    rate: Rate = None,
    drive: Drive = True,
    engine: EngineName = None,
    master: Master = None,
    conf: Conf = None,
    wait: Wait = False,
) -> None:
    """Make records of the rows of files, each exactly once, in the order of their keys."""
    from dss_bulk.backfill_work import BackfillParams, as_they_are, chunks_of
    from dss_bulk.inputs import size_of
    from dss_bulk.row_rule import RowRule
    from dss_bulk.typed import types_given
    from dss_client.changes import CreateJob

    rate_bytes_s = size_or_usual(rate)
    settings = settings_of(context)
    columns = tuple(order.split(",")) if order else ()
    said = types_given(types or [])
    rule = RowRule(target, key, null_key, subject, time_column, payload, columns, said)
    _check(rule)
    folder = None if rejects is None else str(rejects.resolve())
    BackfillParams(rule, as_they_are(files), folder).require_room(name)
    driver = chosen(settings, engine, master, conf, size_of(files), starts=drive)
    inputs = _looked_at(settings, files, rule, driver, refuses=rejects is None)
    change = CreateJob(
        name,
        "backfill",
        target=target,
        rate_bytes_s=rate_bytes_s,
        params=BackfillParams(rule, inputs.files, folder).to_json(),
        inputs=chunks_of(inputs),
    )
    make_job(context, change, driver, drive=drive, wait=wait)


def _check(rule: "RowRule") -> None:
    """Make sure that a rule is valid."""
    from dss_bulk.row_rule import NULL_KEYS

    if rule.null_key not in NULL_KEYS:
        raise typer.BadParameter(f"--null-key is one of {', '.join(NULL_KEYS)}.")
    if any(brace in text for text in rule.subject_parts[::2] for brace in "{}"):
        raise typer.BadParameter(f"--subject '{rule.subject}' has a brace without the other one.")


def _looked_at(
    settings: Settings, files: Sequence[Path], rule: "RowRule", engine: Engine, *, refuses: bool
) -> "Inputs":
    """The files; if the engine runs on this machine, their rows are checked first.

    Raises:
        RowsRefused: some rows cannot become records, and such rows are refused.
    """
    from dss_bulk.backfill_work import looked_through, rows_refused
    from dss_bulk.inputs import Inputs

    as_text = [name for name in rule.order if name not in dict(rule.types or ())]
    if as_text and any(path.suffix.lower() != ".parquet" for path in files):
        names = ", ".join(as_text)
        note(settings, f"sorted as text, 10 before 9: {names}; for numbers --types COLUMN=int64")
    topic = ask(settings, lambda client: client.topics.describe(rule.topic))
    if engine.name != LOCAL:
        inputs = Inputs.looked_at(files, rule)
        note(settings, f"{inputs.rows:,} rows; the driver looks through them before it publishes")
        return inputs
    inputs, look = looked_through(files, rule, topic.patterns)
    if look.rejects and refuses:
        raise rows_refused(look.rejects)
    rows = counted(inputs.rows, "row makes", "rows make")
    rejected = counted(len(look.rejects), "is rejected", "are rejected")
    note(settings, f"{rows} {counted(look.records, 'record')}, {rejected}")
    return inputs
