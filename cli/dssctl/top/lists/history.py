"""What happened: events and operations."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dssctl.output.escape import escaped
from dssctl.top.lists.listing import Column, Listing, Pen, Scene
from dssctl.top.model.places import Ordering, Place
from dssctl.top.paint import amounts
from dssctl.top.paint.spans import Look

if TYPE_CHECKING:
    from dss_client import Event, Operation

SEVERITIES: Mapping[str, Look] = {"error": "bad", "warning": "warn"}
_STATES: Mapping[str, Look] = {
    "done": "good",
    "running": "warn",
    "cancelling": "warn",
    "cancelled": "warn",
    "failed": "bad",
}


def _is_about(subject: str, place: Place) -> bool:
    """Whether something with this subject concerns the place."""
    if place.stream:
        return subject == place.stream
    if place.group:
        return subject.startswith(place.group)
    return not place.name or subject == place.name


def event_concerns(event: "Event", place: Place) -> bool:
    """Whether an event is about a place: by its subject or one of its figures."""
    if _is_about(event.subject, place):
        return True
    wanted = {place.group, place.group.partition("@")[0]} - {""}
    return not place.stream and event.fields.get("group", "") in wanted


def _event_rows(scene: Scene) -> "Mapping[str, Event]":
    events = scene.picture.events
    return {str(each.number): each for each in events if event_concerns(each, scene.place)}


def _times(event: "Event") -> str:
    return f" (x{event.times})" if event.times != 1 else ""


def _event_facts(event: "Event", pen: Pen) -> Sequence[tuple[str, str]]:
    return [
        ("number", str(event.number)),
        ("told", amounts.told_at(event.at_ms, pen.now_ms)),
        ("told last", f"{amounts.moment(event.last_at_ms)}, {event.times} times in all"),
        ("severity", event.severity),
        ("code", escaped(event.code)),
        ("subject", escaped(event.subject)),
        ("what happened", escaped(event.sentence)),
        *((escaped(name), escaped(value)) for name, value in event.fields.items()),
    ]


EVENTS: "Listing[Event]" = Listing(
    title="Events",
    columns=(
        Column("at", "AT", 8, lambda event: event.last_at_ms,
            lambda event, _pen: amounts.clock(event.last_at_ms)),
        Column("severity", "SEVERITY", 8, lambda event: event.severity,
            look=lambda event: SEVERITIES.get(event.severity, "dim"), rises=True),
        Column("code", "CODE", 18, lambda event: event.code, rank=2, rises=True),
        Column("subject", "SUBJECT", 16, lambda event: event.subject, rank=1, grows=True,
            rises=True),
        Column("sentence", "WHAT HAPPENED", 24, lambda event: event.sentence,
            lambda event, _pen: escaped(event.sentence) + _times(event), grows=True, rises=True),
        Column("number", "NUMBER", 7, lambda event: event.number,
            lambda event, _pen: str(event.number), right=True, rank=3),
    ),
    rows=_event_rows,
    order=Ordering("number"),
    opens=lambda _place, key, _event: Place("event", name=key),
    fault=lambda event: event.severity != "info",
    facts=_event_facts,
    empty="nothing happened yet",
)  # fmt: skip


def _operation_rows(scene: Scene) -> "Mapping[str, Operation]":
    operations = scene.picture.items.operations
    if not scene.place.group:
        return operations
    wanted = {scene.place.group}
    return {key: each for key, each in operations.items() if each.subject in wanted}


def _done_of(operation: "Operation") -> str:
    of = operation.streams_done + operation.streams_waiting
    return f"{operation.streams_done}/{of}" if of else "-"


def _undo(operation: "Operation") -> str:
    """The command of an undo. The watch does not say whether a later operation prevents it; the
    plan of the undo does."""
    if operation.undone_by:
        return f"by {operation.undone_by}"
    return "maybe" if operation.undoable else "no"


def _operation_facts(operation: "Operation", pen: Pen) -> Sequence[tuple[str, str]]:
    ended_ms = operation.ended_at_ms
    because = escaped(operation.not_undoable_because)
    return [
        ("operation", str(operation.number)),
        ("kind", operation.kind),
        ("subject", escaped(operation.subject)),
        ("state", ": ".join(filter(None, (operation.state, escaped(operation.failure))))),
        ("summary", escaped(operation.summary)),
        ("streams", _done_of(operation)),
        ("reason", escaped(operation.reason) or "-"),
        ("by", f"{escaped(operation.principal)}, from {escaped(operation.origin)}"),
        ("applied", amounts.told_at(operation.applied_at_ms, pen.now_ms)),
        ("ended", amounts.moment(ended_ms)),
        ("undo", _undo(operation) + (f": {because}" if because else "")),
        ("revision", str(operation.revision)),
        ("change", escaped(operation.change)),
        ("before", escaped(operation.before) or "-"),
        ("after", escaped(operation.after) or "-"),
    ]  # fmt: skip


OPERATIONS: "Listing[Operation]" = Listing(
    title="Operations",
    columns=(
        Column("number", "NUMBER", 6, lambda each: each.number, lambda each, _pen: str(each.number),
            right=True),
        Column("kind", "KIND", 16, lambda each: each.kind, rises=True),
        Column("subject", "SUBJECT", 12, lambda each: each.subject, grows=True, rises=True),
        Column("state", "STATE", 10, lambda each: each.state,
            look=lambda each: _STATES.get(each.state, ""), rises=True),
        Column("streams", "STREAMS", 9, lambda each: each.streams_waiting,
            lambda each, _pen: _done_of(each), right=True, rank=3),
        Column("age", "AGE", 7, lambda each: -each.applied_at_ms,
            lambda each, pen: amounts.age(each.applied_at_ms, pen.now_ms), right=True, rank=1),
        Column("undo", "UNDO", 6, _undo, rank=2, rises=True),
        Column("by", "BY", 8, lambda each: each.principal, rank=4, rises=True),
        Column("summary", "SUMMARY", 20, lambda each: each.summary, grows=True, rank=5, rises=True),
    ),
    rows=_operation_rows,
    order=Ordering("number"),
    opens=lambda _place, key, _each: Place("operation", name=key),
    fault=lambda each: each.state != "done",
    facts=_operation_facts,
    empty="nobody changed anything yet",
)  # fmt: skip
