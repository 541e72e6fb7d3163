"""``dssctl ops``: what operators changed."""

from typing import TYPE_CHECKING, Annotated

import typer

from dssctl.arguments import OperationNumber
from dssctl.changing import Changing, Writing, carry_out, show_operation
from dssctl.completing.remembering import remember
from dssctl.confirm import confirm
from dssctl.connection import ask
from dssctl.documents import Fields, fields_of, number_of, read_document
from dssctl.impact import require_reason
from dssctl.limits import OPERATIONS_LISTED
from dssctl.operation_items import (
    OPERATION_KIND,
    PLAN_KIND,
    SHOWN_KIND,
    STATES,
    operation_item,
    operation_sections,
)
from dssctl.output import note, show_list, show_one
from dssctl.tree import Command, noun, settings_of
from dssctl.waiting import require_done, wait_for_end

if TYPE_CHECKING:
    from dss_client.changes import Change

app = noun("ops")


@app.command("ls", cls=Command)
def list_operations(
    context: typer.Context,
    group: Annotated[
        str | None,
        typer.Option("-g", "--group", help="Of this group only: NAME or NAME@FILTER."),
    ] = None,
    topic: Annotated[str | None, typer.Option(help="Of this topic only.")] = None,
    state: Annotated[
        str | None,
        typer.Option(help="running, cancelling, done, cancelled or failed: only these."),
    ] = None,
    number: Annotated[
        int, typer.Option("-n", "--number", min=1, help="So many at most.")
    ] = OPERATIONS_LISTED,
) -> None:
    """List operations, the newest first."""
    settings = settings_of(context)
    if group is not None and topic is not None:
        raise typer.BadParameter("name a group or a topic, not both.", ctx=context)
    if state is not None and state not in STATES:
        raise typer.BadParameter(f"'{state}' is none of {', '.join(STATES)}.", ctx=context)
    operations = ask(
        settings,
        lambda client: client.operations.list(
            subject=group or topic or "", state=state or "", latest=number + 1
        ),
    )
    items = [operation_item(each) for each in operations[:number]]
    show_list(settings, OPERATION_KIND, items)
    if group is topic is state is None:
        remember("ops", OPERATION_KIND, items)
    if not operations:
        filtered = group is not None or topic is not None or state is not None
        note(settings, "no operation matches" if filtered else "no operation is kept")
    if len(operations) > number:
        note(settings, f"older ones are left out; -n {2 * number} shows more")


@app.command(cls=Command)
def show(context: typer.Context, number: OperationNumber) -> None:
    """Show an operation: who, why, what it was before and is now, and its streams."""
    settings = settings_of(context)
    operation = ask(settings, lambda client: client.operations.get(number))
    show_one(settings, SHOWN_KIND, operation_item(operation), list(operation_sections(operation)))


@app.command(cls=Changing)
def undo(context: typer.Context, number: OperationNumber) -> None:
    """Take an operation back; nothing that was acknowledged at any time comes again."""
    from dss_client.changes import Undo

    carry_out(context, Undo(number))


@app.command(cls=Command)
def wait(context: typer.Context, number: OperationNumber) -> None:
    """Wait until an operation has ended; an error unless it is done then."""
    settings = settings_of(context)
    operation = ask(settings, lambda client: client.operations.get(number))
    if not operation.ended:
        operation = wait_for_end(settings, operation)
    show_operation(settings, operation)
    require_done(operation)


@app.command(cls=Writing)
def cancel(
    context: typer.Context,
    number: OperationNumber,
    yes: Annotated[bool, typer.Option("-y", "--yes", help="Do not ask.")] = False,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; kept with the operation.")] = "",
) -> None:
    """Stop the rest of an operation; what it did stays done, and can be undone."""
    settings = settings_of(context)
    settings.change.reason = reason
    require_reason(settings, context.command_path)
    action = f"Stopping what operation {number} has not done yet"
    confirm(settings, action, str(number), confirmed=yes)
    operation = ask(settings, lambda client: client.operations.cancel(number, reason=reason))
    show_operation(settings, operation)
    if operation.kind == "groups.pause":
        group = operation.subject
        note(settings, f"the group stays paused; resume it: dssctl groups resume {group}")


@app.command(cls=Changing)
def apply(
    context: typer.Context,
    file: Annotated[
        str,
        typer.Argument(metavar="PLAN", help="What --dry-run -o json wrote; - is standard input."),
    ],
) -> None:
    """Do exactly what was planned, or nothing where its subject was changed since."""
    settings = settings_of(context)
    change, revision = read_document(
        file, PLAN_KIND.name, "a plan", "any changing command with --dry-run -o json", _planned
    )
    if settings.change.if_revision is None:
        settings.change.if_revision = revision
    carry_out(context, change)


def _planned(item: Fields) -> "tuple[Change, int]":
    from dss_client.operations import change_of

    return change_of(fields_of(item, "change")), number_of(item, "revision")
