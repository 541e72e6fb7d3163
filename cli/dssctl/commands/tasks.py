"""``dssctl tasks``: what the daemon can do by the clock, or at once.

``tasks run`` is what a system's own cron calls: it asks nothing, writes plain text to a pipe, and
its exit code says how the run ended.
"""

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dss_core.errors import TaskNotFound
from dss_core.times import parse_span_ms
from dssctl.changing import Changing, carry_out
from dssctl.connection import ask
from dssctl.listing import list_items, listing
from dssctl.locked import locked
from dssctl.nouns.schedules import (
    ARGUMENT_KIND,
    TASK_KIND,
    TASK_RUN_KIND,
    show_task_run,
    task_item,
)
from dssctl.output import Item, Section, show_one
from dssctl.selection import ListRules, Named, Wanted
from dssctl.task_arguments import ARGUMENT_HELP, given_arguments
from dssctl.tree import noun, settings_of, showing

if TYPE_CHECKING:
    from dss_client import Client

app = noun("tasks")


@app.command("ls", cls=listing(TASK_KIND, ListRules(remembered="tasks", named=Named("[TASK]"))))
def list_tasks(context: typer.Context) -> None:
    """List the tasks that there are."""

    async def tasks(client: "Client", _wanted: Wanted) -> list[Item]:
        return [task_item(task) for task in await client.schedules.tasks()]

    list_items(context, tasks)


@app.command(cls=showing(TASK_KIND, ARGUMENT_KIND))
def describe(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="TASK", help="Its name.")],
) -> None:
    """Show a task and what it takes."""
    settings = settings_of(context)
    tasks = ask(settings, lambda client: client.schedules.tasks())
    task = next((each for each in tasks if each.name == name), None)
    if task is None:
        raise TaskNotFound(task=name, tasks=", ".join(each.name for each in tasks))
    sections = [Section("arguments", ARGUMENT_KIND)] if task.arguments else []
    show_one(settings, TASK_KIND, task_item(task), sections)


@app.command(cls=showing(TASK_RUN_KIND, command=Changing))
def run(
    context: typer.Context,
    task: Annotated[str, typer.Argument(metavar="TASK", help="See dssctl tasks ls.")],
    argument: Annotated[
        list[str] | None, typer.Option("--arg", metavar="NAME=VALUE", help=ARGUMENT_HELP)
    ] = None,
    run_timeout: Annotated[
        str | None,
        typer.Option(
            "--run-timeout", metavar="SPAN", help="Stop the task after this time, such as 1h."
        ),
    ] = None,
    lock: Annotated[
        Path | None,
        typer.Option(
            "--lock",
            metavar="FILE",
            help="Run nothing while another process holds this file locked; exit with 6.",
        ),
    ] = None,
) -> None:
    """Run a task now, in the daemon, and wait for its end. Nothing is asked."""
    from dss_client.changes import RunTask

    settings_of(context).change.confirmed = True
    timeout_ms = None if run_timeout is None else parse_span_ms(run_timeout)
    with ExitStack() as stack:
        if lock is not None:
            stack.enter_context(locked(lock, task))
        change = RunTask(task, given_arguments(argument), timeout_ms)
        carry_out(context, change, show_task_run, tells_plan=False)
