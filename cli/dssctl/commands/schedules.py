"""``dssctl schedules``: what the daemon does by the clock."""

from typing import TYPE_CHECKING, Annotated

import typer

from dss_core.errors import ScheduleNotFound
from dss_core.times import parse_span_ms
from dssctl.arguments import IfExists
from dssctl.changing import Changing, Removing, Writing, carry_out
from dssctl.connection import ask
from dssctl.impact import require_reason
from dssctl.limits import RUNS_DESCRIBED
from dssctl.listing import list_items, listing
from dssctl.nouns.schedules import (
    DUE_KIND,
    RUN_ALONE_KIND,
    RUN_KIND,
    SCHEDULE_KIND,
    TASK_RUN_KIND,
    due_item,
    run_item,
    schedule_item,
    show_task_run,
)
from dssctl.output import Instant, Item, Section, note, show_list, show_one
from dssctl.page import page
from dssctl.removal import accepting, showing_removal
from dssctl.selection import ListRules, Named, Wanted
from dssctl.settings import Settings
from dssctl.task_arguments import ARGUMENT_HELP, given_arguments
from dssctl.tree import noun, settings_of, showing
from dssctl.waiting import require_done, wait_for_end

if TYPE_CHECKING:
    from dss_client import Client

app = noun("schedules")

Name = Annotated[str, typer.Argument(metavar="SCHEDULE", help="Its name.")]
CronText = Annotated[
    str | None,
    typer.Option("--cron", metavar="FIELDS", help="Such as '0 3 * * *', every night at three."),
]
TimeZone = Annotated[
    str | None,
    typer.Option("--tz", "--time-zone", metavar="ZONE", help="Such as Europe/Berlin; default UTC."),
]
Jitter = Annotated[
    str | None,
    typer.Option(metavar="SPAN", help="Delay each run by a random time up to this."),
]
OverlapPolicy = Annotated[
    str | None,
    typer.Option(
        metavar="POLICY", help="While a run has not ended: skip, queue (one waits) or allow."
    ),
]
CatchUp = Annotated[
    str | None,
    typer.Option(
        "--catchup",
        "--catch-up",
        metavar="SPAN",
        help="Run the latest due time that was missed if it is no older; 10m where absent.",
    ),
]
RunTimeout = Annotated[
    str | None,
    typer.Option(
        "--run-timeout", metavar="SPAN", help="Stop an attempt after this time; default 1h."
    ),
]
Retries = Annotated[int | None, typer.Option(min=0, help="Retries of a failed run; default 0.")]
Backoff = Annotated[
    str | None,
    typer.Option(metavar="SPAN", help="Wait before the first retry; it doubles; default 1m."),
]
TaskGiven = Annotated[
    list[str] | None, typer.Option("--arg", metavar="NAME=VALUE", help=ARGUMENT_HELP)
]


RULES = ListRules(remembered="schedules", named=Named("[SCHEDULE]"))


@app.command("ls", cls=listing(SCHEDULE_KIND, RULES))
def list_schedules(context: typer.Context) -> None:
    """List schedules: what they run, when next, how the last run ended."""

    async def schedules(client: "Client", _wanted: Wanted) -> list[Item]:
        return [schedule_item(each) for each in await client.schedules.list()]

    list_items(context, schedules)


@app.command(cls=Changing)
def create(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Letters, digits, '.', '_', '-'.")],
    cron: Annotated[
        str, typer.Option("--cron", metavar="FIELDS", help="Such as '0 3 * * *', or @daily.")
    ],
    task: Annotated[str, typer.Option(metavar="TASK", help="See dssctl tasks ls.")],
    argument: TaskGiven = None,
    time_zone: TimeZone = None,
    jitter: Jitter = None,
    overlap: OverlapPolicy = None,
    catch_up: CatchUp = None,
    run_timeout: RunTimeout = None,
    retries: Retries = None,
    backoff: Backoff = None,
    paused: Annotated[bool, typer.Option("--paused", help="Run nothing until resumed.")] = False,
) -> None:
    """Have the daemon run a task by the clock. Nothing is asked: it can be removed again."""
    from dss_client.changes import CreateSchedule

    settings_of(context).change.confirmed = True
    carry_out(
        context,
        CreateSchedule(
            name,
            task,
            cron,
            given_arguments(argument),
            time_zone=time_zone,
            jitter_ms=_span_ms(jitter),
            overlap=overlap,
            catch_up_ms=_span_ms(catch_up),
            timeout_ms=_span_ms(run_timeout),
            retries=retries,
            backoff_ms=_span_ms(backoff),
            paused=paused,
        ),
    )


@app.command(cls=page(SCHEDULE_KIND, RUN_KIND))
def describe(context: typer.Context, name: Name) -> None:
    """Show a schedule, when it is due, and its latest runs."""
    settings = settings_of(context)
    found = ask(settings, lambda client: client.schedules.describe(name))
    item = {
        **schedule_item(found.schedule),
        "due_next": [Instant.of_ms(at_ms).rfc3339() for at_ms in found.next_ms],
        "runs": [run_item(run) for run in found.runs[:RUNS_DESCRIBED]],
    }
    sections = [Section("due_next")] if found.next_ms else []
    sections += [Section("runs", RUN_KIND)] if found.runs else []
    show_one(settings, SCHEDULE_KIND, item, sections)


@app.command(cls=Changing)
def edit(
    context: typer.Context,
    name: Name,
    cron: CronText = None,
    argument: TaskGiven = None,
    no_argument: Annotated[
        list[str] | None,
        typer.Option("--no-arg", metavar="NAME", help="Remove this argument."),
    ] = None,
    time_zone: TimeZone = None,
    jitter: Jitter = None,
    no_jitter: Annotated[bool, typer.Option("--no-jitter", help="Begin on time.")] = False,
    overlap: OverlapPolicy = None,
    catch_up: CatchUp = None,
    run_timeout: RunTimeout = None,
    retries: Retries = None,
    backoff: Backoff = None,
) -> None:
    """Change a schedule; what is not named stays as it is."""
    from dss_client.changes import EditSchedule

    if jitter is not None and no_jitter:
        raise typer.BadParameter("there is a jitter, or none; not both.", ctx=context)
    edited = EditSchedule(
        name,
        cron,
        given_arguments(argument),
        tuple(no_argument or ()),
        time_zone=time_zone,
        jitter_ms=0 if no_jitter else _span_ms(jitter),
        overlap=overlap,
        catch_up_ms=_span_ms(catch_up),
        timeout_ms=_span_ms(run_timeout),
        retries=retries,
        backoff_ms=_span_ms(backoff),
    )
    if edited == EditSchedule(name):
        raise typer.BadParameter("name what to change; see --help.", ctx=context)
    carry_out(context, edited)


@app.command("rm", cls=Removing)
def remove(
    context: typer.Context,
    name: Name,
    if_exists: IfExists = False,
) -> None:
    """Remove a schedule with its history. This cannot be undone."""
    from dss_client.changes import RemoveSchedule

    with accepting(context, ScheduleNotFound, name, if_exists=if_exists):
        carry_out(context, RemoveSchedule(name), showing_removal(name))


@app.command(cls=Changing)
def pause(context: typer.Context, name: Name) -> None:
    """Pause a schedule: due times pass without a run; runs that have begun go on."""
    from dss_client.changes import PauseSchedule

    carry_out(context, PauseSchedule(name))


@app.command(cls=Changing)
def resume(context: typer.Context, name: Name) -> None:
    """Resume a schedule: due times count again, from now on."""
    from dss_client.changes import ResumeSchedule

    carry_out(context, ResumeSchedule(name))


@app.command(cls=showing(TASK_RUN_KIND, RUN_KIND, command=Writing))
def trigger(
    context: typer.Context,
    name: Name,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; kept with the operation.")] = "",
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Wait for the end of the run.")
    ] = True,
) -> None:
    """Run a schedule's task now, though it is paused; its next due time stays."""
    settings = settings_of(context)
    settings.change.reason = reason
    require_reason(settings, context.command_path)
    run = ask(settings, lambda client: client.schedules.trigger(name, reason=reason))
    if not run.operation:
        show_one(settings, RUN_KIND, run_item(run))
        note(settings, f"see what becomes of it: dssctl schedules runs {name}")
        return
    operation = ask(settings, lambda client: client.operations.get(run.operation))
    if wait and not operation.ended:
        operation = wait_for_end(settings, operation)
    show_task_run(settings, operation)
    require_done(operation)


@app.command(cls=showing(DUE_KIND))
def preview(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="[SCHEDULE]", help="Its name; or give --cron.")
    ] = None,
    cron: CronText = None,
    time_zone: TimeZone = None,
    count: Annotated[
        int, typer.Option("-n", "--next", min=1, max=100, help="So many due times.")
    ] = 5,
) -> None:
    """Show when a schedule, or a cron expression, is due."""
    settings = settings_of(context)
    if (name is None) == (cron is None) or (name is not None and time_zone is not None):
        raise typer.BadParameter("name a schedule, or give --cron and --tz.", ctx=context)
    due = ask(
        settings,
        lambda client: client.schedules.preview(
            name or "", cron=cron or "", time_zone=time_zone or "", count=count
        ),
    )
    show_list(settings, DUE_KIND, [due_item(each) for each in due])


@app.command(cls=listing(RUN_KIND))
def runs(
    context: typer.Context,
    name: Name,
    last: Annotated[
        bool, typer.Option("--last", help="Only the newest run that ended, with its output.")
    ] = False,
) -> None:
    """List the runs that are kept, the newest first."""
    if last:
        _show_last(settings_of(context), name)
        return

    async def found(client: "Client", _wanted: Wanted) -> list[Item]:
        return [run_item(run) for run in (await client.schedules.describe(name)).runs]

    list_items(context, found)


def _show_last(settings: Settings, name: str) -> None:
    schedule = ask(settings, lambda client: client.schedules.describe(name)).schedule
    if schedule.last is None:
        note(settings, "no run of it has ended yet")
        return
    sections = [Section("output")] if schedule.last.output else []
    show_one(settings, RUN_ALONE_KIND, run_item(schedule.last), sections)


def _span_ms(text: str | None) -> int | None:
    return None if text is None else parse_span_ms(text)
