"""``dssctl ops``: what operators changed."""

from typing import TYPE_CHECKING, Annotated

import typer

from dss_core.errors import WrongUsage
from dssctl.arguments import OfGroup, OperationNumber
from dssctl.changing import Changing, Writing, carry_out, show_operation
from dssctl.confirm import confirm
from dssctl.connection import ask
from dssctl.documents import Fields, fields_of, number_of, read_document
from dssctl.impact import require_reason
from dssctl.limits import OPERATION_NUMBER_MAX, OPERATIONS_LISTED
from dssctl.listing import list_items, listing
from dssctl.nouns.operations import (
    APPLIED_KIND,
    OPERATION_KIND,
    PLAN_KIND,
    SHOWN_KIND,
    STATES,
    operation_item,
    operation_sections,
)
from dssctl.output import Item, note, show_one
from dssctl.page import page
from dssctl.selection import ListRules, Wanted
from dssctl.tree import noun, settings_of, showing
from dssctl.waiting import require_done, wait_for_end

if TYPE_CHECKING:
    from dss_client import Client
    from dss_client.changes import Change

app = noun("ops")


@app.command(
    "ls", cls=listing(OPERATION_KIND, ListRules(limit=OPERATIONS_LISTED, remembered="ops"))
)
def list_operations(
    context: typer.Context,
    group: OfGroup = None,
    topic: Annotated[str | None, typer.Option(help="Only this topic.")] = None,
    state: Annotated[
        str | None,
        typer.Option(help="running, cancelling, done, cancelled or failed: only these."),
    ] = None,
) -> None:
    """List operations, the newest first."""
    if group is not None and topic is not None:
        raise typer.BadParameter("name a group or a topic, not both.", ctx=context)
    if state is not None and state not in STATES:
        raise typer.BadParameter(f"'{state}' is none of {', '.join(STATES)}.", ctx=context)

    async def operations(client: "Client", wanted: Wanted) -> list[Item]:
        found = await client.operations.list(
            subject=group or topic or "", state=state or "", latest=wanted.at_most
        )
        return [operation_item(each) for each in found]

    settings = settings_of(context)
    narrowed = any((group, topic, state))
    if not list_items(context, operations, whole=not narrowed) and not settings.listing.watch_s:
        narrowed = narrowed or bool(settings.listing.filter)
        note(settings, "no operation matches" if narrowed else "no operation is kept")


@app.command(cls=page(SHOWN_KIND))
def show(context: typer.Context, number: OperationNumber) -> None:
    """Show an operation: who, why, the settings before and after, and its streams."""
    settings = settings_of(context)
    operation = ask(settings, lambda client: client.operations.get(number))
    show_one(settings, SHOWN_KIND, operation_item(operation), list(operation_sections(operation)))


@app.command(cls=Changing)
def undo(
    context: typer.Context,
    number: Annotated[
        int | None,
        typer.Argument(
            metavar="[NUMBER]",
            min=1,
            max=OPERATION_NUMBER_MAX,
            help="The operation's number; without one, the newest that can be undone.",
        ),
    ] = None,
) -> None:
    """Take an operation back; nothing that was acknowledged at any time comes again."""
    from dss_client.changes import Undo

    carry_out(context, Undo(_newest_undoable(context) if number is None else number))


def _newest_undoable(context: typer.Context) -> int:
    """The operation meant by a person who names none; the person is shown the plan.

    An undo is skipped: two undos in a row take back two operations, not the first undo.

    Raises:
        WrongUsage: there is none, or nobody can be asked.
    """
    settings = settings_of(context)
    latest = ask(settings, lambda client: client.operations.list(latest=OPERATIONS_LISTED))
    found = next(
        (each for each in latest if each.ended and each.undoable and not each.undoes), None
    )
    if found is None:
        reason = f"none of the newest {OPERATIONS_LISTED} operations can be undone; name another."
        raise WrongUsage(reason=reason, command=context.command_path)
    newest = f"the newest that can be undone is {found.number}, {found.summary}"
    change = settings.change
    if change.confirmed and not change.dry_run:
        # Another operator may have changed something else since the last look.
        example = f"{context.command_path} {found.number} --yes"
        reason = f"name what --yes undoes, as in: {example}; {newest}."
        raise WrongUsage(reason=reason, command=context.command_path)
    note(settings, newest)
    return found.number


@app.command(cls=showing(APPLIED_KIND))
def wait(context: typer.Context, number: OperationNumber) -> None:
    """Wait until an operation has ended; fail unless it is done."""
    settings = settings_of(context)
    operation = ask(settings, lambda client: client.operations.get(number))
    if not operation.ended:
        operation = wait_for_end(settings, operation)
    show_operation(settings, operation)
    require_done(operation)


@app.command(cls=showing(APPLIED_KIND, command=Writing))
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
    """Apply a plan exactly, or do nothing if its subject has changed since."""
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
