"""``dssctl audits``: whether the records of a topic are there, each once, in place and in order."""

from typing import TYPE_CHECKING, Annotated

import typer

from dss_core.errors import AuditFound, IllegalArgument
from dssctl.changing import Changing
from dssctl.connection import ask
from dssctl.driving import (
    Chunk,
    Drive,
    End,
    JobName,
    Making,
    Only,
    Start,
    make_job,
    size_or_usual,
    source_bytes,
    time_us,
)
from dssctl.engines import Conf, EngineName, Master, asks_size, chosen
from dssctl.job_waiting import require_job_done, wait_for_end_of
from dssctl.pages.audit_page import AUDIT_KIND, show_audit
from dssctl.settings import Settings
from dssctl.tree import noun, settings_of, showing

if TYPE_CHECKING:
    from dss_bulk.audits.output import Output
    from dss_bulk.audits.partial import Check
    from dss_bulk.audits.report import Report
    from dss_client import Client, Job

app = noun("audits")

_CHECKS = "gaps, damage, duplicates, misrouted, order, subjects, lost, times, unexamined"
FailOn = Annotated[
    str,
    typer.Option(
        "--fail-on",
        metavar="CHECKS",
        help=f"Exit with 1 where one of them found something: {_CHECKS}; or problems, which are "
        "the first six, or none.",
    ),
]


@app.command(cls=showing(*Changing.kinds, AUDIT_KIND, command=Making))
def create(
    context: typer.Context,
    name: JobName,
    source: Annotated[
        str, typer.Option("--from", metavar="TOPIC", help="The topic that is looked at.")
    ],
    start: Start = None,
    end: End = None,
    only: Only = None,
    chunk: Chunk = None,
    engine: EngineName = None,
    master: Master = None,
    conf: Conf = None,
    drive: Drive = True,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for its end, and print the report.")
    ] = False,
    fail_on: FailOn = "problems",
) -> None:
    """Look at every record of a topic: gaps, damage, doubles, routing, order, subjects, skew.

    What it finds is kept with the job: dssctl audits show NAME. It publishes nothing.
    """
    from dss_bulk.audits.params import AuditParams
    from dss_client.changes import CreateJob

    settings = settings_of(context)
    checks = _checks(fail_on)
    topic = ask(settings, lambda client: client.topics.describe(source))
    change = CreateJob(
        name,
        "audit",
        source=source,
        start_us=time_us(start),
        end_us=time_us(end),
        filter=only or "",
        chunk_bytes=size_or_usual(chunk),
        params=AuditParams.of(topic).to_json(),
    )
    size = source_bytes(settings, change) if asks_size(settings, engine) else None
    driver = chosen(settings, engine, master, conf, size, starts=drive)
    started = make_job(context, change, driver, drive=drive, tells=not wait)
    if wait and not settings.change.dry_run:
        require_job_done(wait_for_end_of(settings, name, started))
        _show(settings, ask(settings, lambda client: client.jobs.get(name)), checks)


@app.command(cls=showing(AUDIT_KIND))
def show(context: typer.Context, name: JobName, fail_on: FailOn = "none") -> None:
    """Show what an audit found, or has found so far: also how even the streams are."""
    settings = settings_of(context)
    _show(settings, ask(settings, lambda client: client.jobs.get(name)), _checks(fail_on))


def _show(settings: Settings, job: "Job", checks: "tuple[Check, ...]") -> None:
    if job.kind != "audit":
        raise IllegalArgument(argument=f"the job {job.name}", rule=f"it is a {job.kind}, no audit")
    report, output = _report(settings, job)
    show_audit(settings, job, report, output.groups)
    found = report.found(checks)
    if found:
        raise AuditFound(audit=job.name, what="; ".join(each.sentence for each in found))


def _report(settings: Settings, job: "Job") -> "tuple[Report, Output]":
    from dss_bulk.audits.output import output_of
    from dss_bulk.audits.params import AuditParams
    from dss_bulk.audits.report import report_of

    async def output(client: "Client") -> "Output":
        # The last chunk has the result of all of them.
        after = job.chunks - 2 if job.published == job.chunks > 1 else None
        return await output_of(client.jobs.chunks(str(job.job_id), after=after))

    found = ask(settings, output)
    partitions = AuditParams.from_json(job.name, job.params).partitions
    return report_of(found.partial, partitions), found


def _checks(text: str) -> "tuple[Check, ...]":
    """The checks of a list.

    Raises:
        typer.BadParameter: a check does not exist.
    """
    from dss_bulk.audits.partial import PROBLEMS, Check

    if text == "none":
        return ()
    if text == "problems":
        return PROBLEMS
    try:
        return tuple(Check(each.strip()) for each in text.split(","))
    except ValueError as wrong:
        raise typer.BadParameter(f"'{text}': checks are {_CHECKS}.") from wrong
