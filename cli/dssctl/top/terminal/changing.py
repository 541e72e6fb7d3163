"""Making a change: ask what it needs, plan it, show the plan, ask again, apply it.

Invariant: the applied plan is the one that was shown, and only its button agrees to it.
"""

import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from dss_core.errors import DssError
from dssctl.output.escape import escaped
from dssctl.top.feed.source import Source
from dssctl.top.lists.listing import facts_of
from dssctl.top.lists.schedules import SCHEDULES
from dssctl.top.paint.spans import Line, line, said, wrapped
from dssctl.top.panels.blocks import facts_block
from dssctl.top.panels.plan import plan_lines
from dssctl.top.stage.actions import Action, Spot
from dssctl.top.stage.command_lines import change_line, trigger_line
from dssctl.top.stage.view import View
from dssctl.top.terminal.dialog import Asked, Dialog, Question, failure_lines

if TYPE_CHECKING:
    from dss_client import OperationPlan
    from dss_client.changes import Change

Ask: TypeAlias = Callable[[Dialog], Awaitable[Any]]
Done: TypeAlias = Callable[[Mapping[str, str]], Awaitable[Any]]
Command: TypeAlias = Callable[[Mapping[str, str]], str]

_WIDTH_MOST = 106
"""The width of the text in a dialog, which is at most 110 wide."""
_LINES_AROUND = 12
"""The lines of a dialog, and of the terminal around it, that the plan does not get."""


class Made(NamedTuple):
    """A change that was applied."""

    line: str
    """The command line that does the same."""
    notice: str


class Changing:
    """One change."""

    def __init__(self, source: Source, view: View, ask: Ask) -> None:
        self._source = source
        self._view = view
        self._show = ask

    async def made(self, action: Action, spot: Spot) -> Made | None:
        """Make the change; None if nobody agreed, or if it was refused, which is shown."""
        title = action.title(spot)
        if action.change is None:
            return await self._triggered(title, spot)
        planned = await self._planned(title, action, spot)
        if planned is None:
            return None
        change, plan = planned
        if plan.nothing_to_do:
            await self._ask(Question(title, (line(said(f"nothing to do: {plan.summary}")),)))
            return None
        must_be = action.severe(spot) if action.severe else ""
        return await self._agreed(title, change, plan, must_be)

    async def _planned(
        self, title: str, action: Action, spot: Spot
    ) -> "tuple[Change, OperationPlan] | None":
        """A change and its plan, with the typed details; None if nobody gave them."""

        async def planned(typed: Mapping[str, str]) -> "tuple[Change, OperationPlan]":
            assert action.change is not None
            change = action.change(spot, typed.get("target", ""))
            return change, await self._source.plan(change)

        try:
            if not action.asks:
                return await planned({})
        except DssError as failure:
            await self._ask(Question(title, tuple(failure_lines(failure, self._width))))
            return None
        field = Asked("target", action.asks, action.suggests, needed=True)
        lines = tuple(line(said(each)) for each in wrapped(action.accepts(spot), self._width))
        given: tuple[Change, OperationPlan] | None = await self._ask(
            Question(title, lines, (field,), "Plan", planned, enters=True)
        )
        return given

    async def _agreed(
        self, title: str, change: "Change", plan: "OperationPlan", must_be: str
    ) -> Made | None:
        """The command line of the change as asked for: the planned one has offsets that no line can
        say."""
        # One id for all attempts: if a change arrived and its answer was lost, it is not made
        # again.
        operation_id = str(uuid.uuid4())

        async def applied(typed: Mapping[str, str]) -> Made:
            reason = typed["reason"]
            made = await self._source.apply(plan, reason=reason, operation_id=operation_id)
            undo = f"; undo: dssctl ops undo {made.number}" if made.undoable else ""
            # Without its state, which the watch reports, and which has changed by the time this is
            # read.
            notice = f"operation {made.number}, {made.kind}, was applied{undo}"
            return Made(change_line(change, reason=reason), notice)

        def command(typed: Mapping[str, str]) -> str:
            return change_line(change, revision=plan.revision, reason=typed["reason"])

        lines = plan_lines(plan, self._width, self._height, self._view.pen)
        must_be = must_be or (plan.subject if self._view.badge.protected else "")
        return await self._confirmed(title, lines, must_be, applied, command)

    async def _triggered(self, title: str, spot: Spot) -> Made | None:
        """There is no plan, as due times do not change: the task is shown instead."""
        name = str(spot.row.name)

        async def triggered(typed: Mapping[str, str]) -> Made:
            run = await self._source.trigger(name, reason=typed["reason"])
            operation = f", operation {run.operation}," if run.operation else ""
            notice = f"run {run.run} of {name}{operation} was begun: dssctl schedules runs {name}"
            return Made(trigger_line(name, typed["reason"]), notice)

        facts = [*facts_of(SCHEDULES, spot.row, self._view.pen)]
        lines = facts_block(facts, self._width, min(len(facts), self._height), self._view.pen)
        must_be = name if self._view.badge.protected else ""
        return await self._confirmed(
            title, lines, must_be, triggered, lambda typed: trigger_line(name, typed["reason"])
        )

    async def _confirmed(
        self, title: str, lines: list[Line], must_be: str, done: Done, command: Command
    ) -> Made | None:
        needed = self._view.badge.protected
        fields = [Asked("reason", "Reason, kept with the operation", needed=needed)]
        if must_be:
            fields.append(Asked("typed", f"Type {escaped(must_be)} to agree", must_be=must_be))
        made: Made | None = await self._ask(
            Question(title, tuple(lines), tuple(fields), "Run", done, command)
        )
        return made

    @property
    def _width(self) -> int:
        return min(_WIDTH_MOST, self._view.size[0] * 9 // 10 - 4)

    @property
    def _height(self) -> int:
        return max(4, self._view.size[1] - _LINES_AROUND)

    async def _ask(self, question: Question) -> Any:  # noqa: ANN401 -- what is made of its answer
        return await self._show(Dialog(question, ascii_only=not self._view.glyphs.dots))
