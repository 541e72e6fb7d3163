"""The steps of every command that changes something: plan, show, ask, apply, wait, show.

A command builds the change and hands it over. Invariant: nothing is applied that was not first
planned and agreed to; what is applied is exactly what was planned. Data is one plan (a dry run, or
nothing to do) or one operation; everything else goes to stderr.
"""

import json
import sys
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from dss_core.errors import DssError, ExitCode, OperationIdReused, RevisionMoved
from dssctl.confirm import confirm, require_somebody
from dssctl.connection import ask
from dssctl.global_options import SettingsOption
from dssctl.impact import Impact, require_reason
from dssctl.nouns.operations import (
    APPLIED_KIND,
    AS_PLANNED_KIND,
    PLAN_KIND,
    operation_item,
    operation_sections,
    plan_item,
    plan_sections,
)
from dssctl.output import note, show_one, tell_one
from dssctl.settings import Format, Settings
from dssctl.tree import Command, settings_of

if TYPE_CHECKING:
    from dss_client import Operation, OperationPlan
    from dss_client.changes import Change

Show = Callable[[Settings, "Operation"], None]


class _HowOption(SettingsOption):
    section = "How it is changed"


class Writing(Command):
    """A verb that changes something at once, without a plan and without an operation."""

    impact = Impact.WRITE

    def __init__(self, name: str | None, **attributes: Any) -> None:  # noqa: ANN401 -- Typer's own
        attributes["params"] = [*(attributes.get("params") or []), confirm_option()]
        super().__init__(name, **attributes)


class Changing(Command):
    """A verb that changes something, with the common options of these verbs."""

    impact = Impact.WRITE
    kinds = (PLAN_KIND, APPLIED_KIND)

    def __init__(self, name: str | None, **attributes: Any) -> None:  # noqa: ANN401 -- Typer's own
        attributes["params"] = [*(attributes.get("params") or []), *_options()]
        super().__init__(name, **attributes)

    def changes(self, _ctx: Any, settings: Settings) -> bool:  # noqa: ANN401 -- Typer's private types
        """A dry run changes nothing."""
        return not settings.change.dry_run


class Removing(Changing):
    """A verb that no other verb can undo."""

    impact = Impact.DESTRUCTIVE


def show_operation(settings: Settings, operation: "Operation") -> None:
    """Print the applied operation, and how to undo it."""
    if settings.change.plan_seen and operation.state == "done":
        show_one(settings, AS_PLANNED_KIND, operation_item(operation))
    else:
        sections = list(operation_sections(operation))
        show_one(settings, APPLIED_KIND, operation_item(operation), sections)
    number = operation.number
    if operation.state == "cancelling":
        note(settings, f"the rest of operation {number} stops; wait: dssctl ops wait {number}")
    elif not operation.ended:
        how = f"wait for it: dssctl ops wait {number}; stop the rest: dssctl ops cancel {number}"
        note(settings, f"operation {number} goes on; {how}")
    elif operation.undoable:
        note(settings, f"undo with: dssctl ops undo {number}")


def carry_out(
    context: typer.Context,
    change: "Change",
    show: Show = show_operation,
    *,
    tells_plan: bool = True,
    has_end: Callable[[Settings, "Operation"], bool] | None = None,
) -> None:
    """Make the change, as the options of the command say.

    A plan that nobody is asked about need not be shown. An operation without a foreseeable end is
    not awaited.

    Raises:
        typer.Exit: in a dry run, if that was asked for: there is something to do.
        DssError: it cannot be done, was declined, failed, or takes too long.
    """
    settings = settings_of(context)
    if settings.change.dry_run:
        _show_plan(settings, change)
        return
    require_reason(settings, context.command_path)
    operation = _known(settings, change) or _agreed(context, change, tells_plan=tells_plan)
    if operation is None:
        return
    from dssctl.waiting import require_done, wait_for_end

    is_awaited = settings.change.wait and not operation.ended
    if is_awaited and (has_end is None or has_end(settings, operation)):
        operation = wait_for_end(settings, operation)
    show(settings, operation)
    require_done(operation)


def _show_plan(settings: Settings, change: "Change") -> None:
    plan = _planned(settings, change)
    show_one(settings, PLAN_KIND, plan_item(plan), list(plan_sections(plan)))
    if settings.change.detailed_exit_code and not plan.nothing_to_do:
        raise typer.Exit(ExitCode.CHANGES_PENDING)


_ASKED_ALIKE = (
    "group", "topic", "client_id", "number", "direction", "stream", "offset", "count", "borrower",
    "job",
)  # fmt: skip
"""Fields that are equal in an operation and in a repeated command: no plan resolves them."""


def _known(settings: Settings, change: "Change") -> "Operation | None":
    """The operation that an earlier run of this command applied under the same id.

    Raises:
        OperationIdReused: the id names an operation that changed something else.
    """
    operation_id = settings.change.operation_id
    if operation_id is None:
        return None
    operation = ask(settings, lambda client: client.operations.named(operation_id))
    if operation is None:
        return None
    applied = json.loads(operation.change)
    if applied["change"] != type(change).__name__ or any(
        field in applied and applied[field] != getattr(change, field, applied[field])
        for field in _ASKED_ALIKE
    ):
        raise OperationIdReused(
            operation_id=operation_id, number=operation.number, kind=operation.kind
        )
    note(settings, f"operation {operation.number} was applied under this id already")
    return operation


def _agreed(context: typer.Context, change: "Change", *, tells_plan: bool) -> "Operation | None":
    """Plan, show, ask and apply; None if there is nothing to do.

    A script is told that a name does not exist before it is told which flag it lacks.
    """
    settings = settings_of(context)
    plan = _planned(settings, change)
    require_somebody(settings, context.command_path)
    if plan.nothing_to_do:
        stays = f"the revision stays {plan.revision}"
        note(settings, f"nothing was changed: there is nothing to do, and {stays}")
        show_one(settings, PLAN_KIND, plan_item(plan), list(plan_sections(plan)))
        return None
    if tells_plan:
        tell_one(settings, PLAN_KIND, plan_item(plan), list(plan_sections(plan)))
        settings.change.plan_seen = _is_seen(settings)
    confirm(settings, plan.summary, plan.subject, confirmed=settings.change.confirmed)
    return _applied(settings, plan)


def _is_seen(settings: Settings) -> bool:
    """Whether a plan on stderr stands right above the outcome on stdout."""
    seen = sys.stderr.isatty() and sys.stdout.isatty() and not settings.quiet
    return seen and settings.format is Format.TABLE


def _planned(settings: Settings, change: "Change") -> "OperationPlan":
    plan = ask(settings, lambda client: client.operations.plan(change))
    if settings.change.if_revision not in {None, plan.revision}:
        _refuse_moved(settings, plan)
    return plan


def _refuse_moved(settings: Settings, plan: "OperationPlan") -> NoReturn:
    """Refuse what the daemon would refuse, before anybody is asked, and in its words."""
    newest = ask(settings, lambda client: client.operations.list(subject=plan.subject, latest=1))
    raise RevisionMoved(
        subject=plan.subject,
        planned=settings.change.if_revision,
        found=plan.revision,
        last=f"operation {newest[0].number} applied {newest[0].kind}"
        if newest
        else "it was edited",
    )


def _applied(settings: Settings, plan: "OperationPlan") -> "Operation":
    options = settings.change
    operation_id = options.operation_id or str(uuid.uuid4())
    try:
        return ask(
            settings,
            lambda client: client.operations.apply(
                plan,
                if_revision=options.if_revision,
                reason=options.reason,
                operation_id=operation_id,
            ),
        )
    except DssError as failure:
        if not failure.definite:
            again = f"the same command with --op-id {operation_id} applies it once at most"
            note(settings, f"whether it was applied is unknown; {again}")
            note(settings, f"look: {_listing_of(plan)}")
        raise


def _listing_of(plan: "OperationPlan") -> str:
    """The command that lists what was done to its subject."""
    from shlex import quote  # seldom needed

    narrowed = {"groups": "--group", "offsets": "--group", "topics": "--topic"}
    option = narrowed.get(plan.kind.partition(".")[0])
    return f"dssctl ops ls {option} {quote(plan.subject)}" if option else "dssctl ops ls"


def confirm_option() -> SettingsOption:
    """Added to each command for which a protected context asks for a name."""
    return _HowOption(
        ["--confirm"],
        _put_confirm_name,
        metavar="NAME",
        help="The name of what is changed; a protected context asks for it otherwise.",
    )


def _options() -> list[Any]:
    """New options each time: an option belongs to one command."""
    return [
        _HowOption(
            ["--dry-run"],
            _put_dry_run,
            is_flag=True,
            help="Only show the plan. With -o json it is a file for ops apply.",
        ),
        _HowOption(["-y", "--yes"], _put_confirmed, is_flag=True, help="Do not ask."),
        confirm_option(),
        _HowOption(["--reason"], _put_reason, metavar="TEXT", help="Why; kept with the operation."),
        _HowOption(
            ["--if-revision"],
            _put_if_revision,
            metavar="N",
            help="Refuse unless this is still its revision.",
        ),
        _HowOption(
            ["--op-id"],
            _put_operation_id,
            metavar="TEXT",
            help="An id of your own: repeated with it, a command changes nothing twice.",
        ),
        _HowOption(
            ["--wait/--no-wait"],
            _put_wait,
            is_flag=True,
            help="Wait for the end (default), or only for the beginning.",
        ),
        _HowOption(
            ["--detailed-exitcode"],
            _put_detailed_exit_code,
            is_flag=True,
            help="A dry run that finds something to do exits with 10.",
        ),
    ]


def _put_dry_run(settings: Settings, value: bool) -> None:
    settings.change.dry_run = value


def _put_confirmed(settings: Settings, value: bool) -> None:
    settings.change.confirmed = value


def _put_confirm_name(settings: Settings, value: str) -> None:
    settings.change.confirm_name = value


def _put_reason(settings: Settings, value: str) -> None:
    settings.change.reason = value


def _put_if_revision(settings: Settings, value: str) -> None:
    if not (value.isascii() and value.isdecimal()):
        raise ValueError(f"'{value}' is no revision; see dssctl groups ls.")
    settings.change.if_revision = int(value)


def _put_operation_id(settings: Settings, value: str) -> None:
    if not value:
        raise ValueError("an id has a character at least.")
    settings.change.operation_id = value


def _put_wait(settings: Settings, value: bool) -> None:
    settings.change.wait = value


def _put_detailed_exit_code(settings: Settings, value: bool) -> None:
    settings.change.detailed_exit_code = value
