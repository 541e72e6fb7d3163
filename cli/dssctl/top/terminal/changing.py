"""Making a change: ask what it needs, plan it, show the plan, ask again, apply it.

Invariant: what is applied is the plan that was shown, and nobody agreed to it but by its button.
"""

import uuid
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from dss_core.errors import DssError
from dssctl.top.feed.source import Source
from dssctl.top.paint.spans import Line, line, said
from dssctl.top.panels.plan import plan_lines
from dssctl.top.stage.actions import Action, Spot
from dssctl.top.stage.command_lines import change_line
from dssctl.top.stage.view import View
from dssctl.top.terminal.dialog import Asked, Dialog, Question

if TYPE_CHECKING:
    from dss_client import OperationPlan
    from dss_client.changes import Change

Ask: TypeAlias = Callable[[Dialog], Awaitable[dict[str, str] | None]]

_WIDTH_MOST = 106
"""Of the text in a dialog, which is at most 110 wide."""
_LINES_AROUND = 12
"""Of a dialog, and of the terminal beside it, that the plan does not get."""


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
        """Make it; None where nobody agreed, or something stands against it, which is told."""
        title = action.title(spot)
        typed = await self._typed(action, title)
        if typed is None:
            return None
        try:
            must_be = action.severe(spot) if action.severe else ""
            return await self._agreed(title, action.change(spot, typed), must_be)
        except DssError as failure:
            await self._ask(Question(title, tuple(_failure_lines(failure))))
            return None

    async def _typed(self, action: Action, title: str) -> str | None:
        """What the action needs to know; None where nobody told."""
        if not action.asks:
            return ""
        field = Asked("target", action.asks, action.suggests)
        given = await self._ask(Question(title, (), (field,), "Plan", enters=True))
        return given["target"] or None if given else None

    async def _agreed(self, title: str, change: "Change", must_be: str) -> Made | None:
        plan = await self._source.plan(change)
        if plan.nothing_to_do:
            await self._ask(Question(title, (line(said(f"nothing to do: {plan.summary}")),)))
            return None
        if self._view.badge.protected:
            must_be = must_be or plan.subject
        given = await self._ask(self._question(title, plan, change, must_be))
        if given is None:
            return None
        reason = given["reason"]
        operation = await self._source.apply(plan, reason=reason, operation_id=str(uuid.uuid4()))
        undo = f"; undo: dssctl ops undo {operation.number}" if operation.undoable else ""
        notice = f"operation {operation.number} {operation.kind}: {operation.state}{undo}"
        return Made(change_line(change, reason=reason), notice)

    def _question(
        self, title: str, plan: "OperationPlan", change: "Change", must_be: str
    ) -> Question:
        columns, lines = self._view.size
        width = min(_WIDTH_MOST, columns * 9 // 10 - 4)
        needed = self._view.badge.protected
        fields = [Asked("reason", "Reason, kept with the operation", needed=needed)]
        if must_be:
            fields.append(Asked("typed", f"Type {must_be} to agree", must_be=must_be))
        return Question(
            title,
            tuple(plan_lines(plan, width, max(4, lines - _LINES_AROUND), self._view.pen)),
            tuple(fields),
            "Run",
            lambda typed: change_line(change, revision=plan.revision, reason=typed["reason"]),
        )

    async def _ask(self, question: Question) -> dict[str, str] | None:
        return await self._show(Dialog(question, ascii_only=not self._view.glyphs.dots))


def _failure_lines(failure: DssError) -> list[Line]:
    lines = [line(said(f"{failure.code}: {failure.message}", "bad"))]
    if failure.hint_text:
        lines.append(line(said(failure.hint_text)))
    if not failure.definite:
        lines.append(line("Whether it was applied is not known: see :operations"))
    return lines
