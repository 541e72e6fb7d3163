"""A plan, as it is shown before a person agrees to it.

Invariant: a plan that cannot be undone says so in words, however little room there is.
"""

from typing import TYPE_CHECKING

from dss_core.counted import counted
from dssctl.output.escape import escaped
from dssctl.top.lists.listing import Pen
from dssctl.top.paint import amounts
from dssctl.top.paint.spans import Line, Span, line, wrapped

if TYPE_CHECKING:
    from dss_client import OperationPlan
    from dss_client.operation_values import StreamPlan

_LABEL = 9


def plan_lines(plan: "OperationPlan", width: int, height: int, pen: Pen) -> list[Line]:
    """The effects of a plan, in at most so many lines; streams that do not fit are counted."""
    head = [
        *_said("plan", f"{plan.kind} of {plan.subject}, at its revision {plan.revision}", width),
        *_said("does", plan.summary, width),
        *(row for each in plan.effects for row in _said("", each, width)),
    ]
    if plan.members:
        touched = f"{counted(len(plan.members), 'member')}: {', '.join(plan.members)}"
        head += _said("touches", touched, width)
    undo = _undo_lines(plan, width, pen)
    room = max(0, height - len(head) - len(undo))
    return [*head[: height - len(undo)], *_streams(plan, room), *undo]


def _said(label: str, text: str, width: int) -> list[Line]:
    pieces = wrapped(escaped(text), width - _LABEL)
    return [
        line(Span((label if index == 0 else "").ljust(_LABEL), "dim"), piece)
        for index, piece in enumerate(pieces)
    ]


def _undo_lines(plan: "OperationPlan", width: int, pen: Pen) -> list[Line]:
    if plan.undoable:
        until = plan.undoable_until_ms
        within = "" if until is None else f", until {amounts.moment(until)}"
        return [line(Span("undo".ljust(_LABEL), "dim"), Span(f"can be undone{within}", "good"))]
    because = f": {escaped(plan.not_undoable_because)}" if plan.not_undoable_because else ""
    words = f"{pen.glyphs.bad} CANNOT BE UNDONE{because}"
    return [
        line(Span(("undo" if index == 0 else "").ljust(_LABEL), "dim"), Span(piece, "bad"))
        for index, piece in enumerate(wrapped(words, width - _LABEL))
    ]


def _streams(plan: "OperationPlan", room: int) -> list[Line]:
    """The streams that change most, as many as fit."""
    rows = [
        (f"{escaped(each.stream)}  {each.floor} -> {each.target}", _moved(each))
        for each in sorted(plan.streams, key=lambda each: -(each.again + each.passed))
    ] + [
        (escaped(each.stream), escaped(f"{each.from_client_id or '-'} -> {each.to_client_id}"))
        for each in plan.moves
    ]  # fmt: skip
    shown = rows if len(rows) <= room else rows[: max(0, room - 1)]
    lines = [
        line(Span(("streams" if index == 0 else "").ljust(_LABEL), "dim"), f"{left}  {right}")
        for index, (left, right) in enumerate(shown)
    ]
    if len(shown) < len(rows) and room > 0:
        left = counted(len(rows) - len(shown), "more stream")
        lines.append(line(Span("".ljust(_LABEL), "dim"), Span(f"... {left}", "dim")))
    return lines


def _moved(each: "StreamPlan") -> str:
    sign = "" if each.exact else "<="
    parts = []
    if each.again:
        parts.append(f"{sign}{each.again} again")
    if each.passed:
        parts.append(f"{sign}{each.passed} passed over")
    if each.clamped:
        parts.append("clamped to what is kept")
    return ", ".join(parts) or "stays"
