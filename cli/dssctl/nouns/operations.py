"""Plans and operations: what each field means, and how it is shown.

Invariant: an item has the same fields wherever it is printed; only the columns of tables differ.
"""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dss_core.counted import counted
from dssctl.fields.model import Fields, anything, items, moment, number, text, texts, truth
from dssctl.items import item_of
from dssctl.output import Column, Instant, Item, Kind, Section, Value, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dss_client import Operation, OperationPlan
    from dss_client.operation_values import OperatedStream

PLAN: Fields = (
    text("kind", "For example offsets.rewind."),
    text("subject", "The group, topic, client or operation that is changed."),
    number("revision", "The subject's revision when planned; the plan applies only to that one."),
    text("summary", "What would happen, in a sentence."),
    truth("nothing_to_do", "Whether it would change nothing."),
    items("streams", "StreamPlan", "Streams whose cursor moves."),
    items("moves", "StreamMove", "Streams that go to another member."),
    texts("effects", "What else would happen, a sentence each."),
    texts("members", "Clients whose members are affected."),
    truth("undoable", "Whether it can be undone."),
    text("not_undoable_because", "Why it cannot be undone.", optional=True),
    moment("undoable_until", "Until when it can be undone.", optional=True),
    moment("planned_at", "When it was planned."),
    anything("change", "What was asked for, with times and offsets resolved."),
)

STREAM_PLAN: Fields = (
    text("stream", "The stream."),
    number("floor", "The first unacknowledged offset now."),
    number("target", "The first unacknowledged offset then."),
    number("again", "Records that are sent again."),
    number("passed", "Records that are skipped."),
    truth("exact", "Whether these are counted; else they are upper bounds, shown as <=."),
    truth("clamped", "Whether retention or the end of the stream moved the target."),
    text("client_id", "Who holds it.", optional=True),
)

STREAM_MOVE: Fields = (
    text("stream", "The stream."),
    text("from_client_id", "Who gives it back.", optional=True),
    text("to_client_id", "Who gets it."),
    text("from_borrower_id", "The member that gives it back.", optional=True),
    text("to_borrower_id", "The member that gets it."),
)

OPERATION: Fields = (
    number("number", "Its number, by which other commands know it."),
    text("operation_id", "The caller's own id: repeated with it, a command changes nothing twice."),
    text("kind", "For example offsets.rewind."),
    text("subject", "The group, topic, client or operation that was changed."),
    text("state", "running, cancelling, done, cancelled or failed."),
    text("summary", "What it does, in a sentence."),
    text("reason", "Why, as its caller said.", optional=True),
    text("principal", "Who applied it."),
    text("origin", "From where it was applied."),
    moment("applied_at", "When it was applied."),
    moment("ended_at", "When it ended.", optional=True),
    number("revision", "The subject's revision after it."),
    anything("change", "What was asked for, with times and offsets resolved.", optional=True),
    anything("before", "The changed settings before it.", optional=True),
    anything("after", "The changed settings after it.", optional=True),
    text("failure", "Why it failed.", optional=True),
    number("undoes", "The operation that it undoes.", optional=True),
    number("undone_by", "The operation that undid it.", optional=True),
    truth("undoable", "Whether it can be undone."),
    text("not_undoable_because", "Why it cannot be undone.", optional=True),
    number("streams_done", "Streams that are done."),
    number("streams_waiting", "Streams that are not."),
    number(
        "records_done",
        "Dead letters that came back, or were given up, so far; while their operation runs.",
        optional=True,
    ),
    number("records_asked", "Dead letters of the operation in all.", optional=True),
    items("streams", "OperatedStream", "Its streams; of a single one only."),
    texts("output", "What a task printed, if one was run.", absent=True),
)

OPERATED_STREAM: Fields = (
    text("stream", "The stream."),
    truth("done", "Whether it is done."),
    number("floor_before", "The first unacknowledged offset before.", optional=True),
    number("floor_after", "The first unacknowledged offset after.", optional=True),
    text("client_id", "The client that it waits for.", optional=True),
)

SKIPPED_RECORDS: Fields = (
    number("operation", "The operation that did it; dssctl ops undo undoes it if possible."),
    text("kind", "records.skip, offsets.skip, rq.skip or dlq.discard, for some."),
    text("stream", "Their stream."),
    number(
        "offset",
        "The first offset there; none for single records of queues.",
        optional=True,
    ),
    number("count", "Number of offsets, or of records of its queues."),
    moment("applied_at", "When it was applied."),
    text("principal", "Who applied it."),
    text("reason", "Why, as they said.", optional=True),
    truth("undoable", "Whether it can be undone."),
)

REMOVAL: Fields = (
    text("name", "What was to be removed."),
    truth("removed", "Whether this command removed it."),
    number("operation", "The operation that removed it.", optional=True),
)

_STATE_STYLES = {
    "done": "green",
    "running": "yellow",
    "cancelling": "yellow",
    "cancelled": "yellow",
    "failed": "bold red",
}

STATES = tuple(_STATE_STYLES)
"""The states of an operation."""


def _bound(field: str) -> "Column":
    def cell(item: Item, _now_us: int) -> str:
        return f"{item[field]}" if item["exact"] else f"<={item[field]}"

    return Column(field, field.upper(), right=True, cell=cell)


def _target(item: Item, _now_us: int) -> str:
    return f"{item['target']}, clamped" if item["clamped"] else f"{item['target']}"


def _undo_of_plan(item: Item, _now_us: int) -> str:
    until = item["undoable_until"]
    if item["nothing_to_do"]:
        return "there is nothing to do"
    if not item["undoable"]:
        return f"this cannot be undone: {item['not_undoable_because']}"
    whole = until.us // 1_000_000 * 1_000_000 if isinstance(until, Instant) else None
    return "yes" if whole is None else f"possible until {Instant(whole).rfc3339()}"


def _undo_of_operation(item: Item, _now_us: int) -> str:
    if item["undone_by"]:
        return f"undone by {item['undone_by']}"
    if item["undoable"]:
        return "yes"
    return f"no: {item['not_undoable_because']}"


def _streams_done(item: Item, _now_us: int) -> str:
    done, waiting = item["streams_done"], item["streams_waiting"]
    assert isinstance(done, int)
    assert isinstance(waiting, int)
    return f"{done}/{done + waiting}" if done + waiting else "-"


def _records_done(item: Item, now_us: int) -> str:
    if item["records_asked"] is None:
        return "-"
    return f"{shown(item['records_done'], now_us)}/{shown(item['records_asked'], now_us)}"


def _fields(field: str, header: str) -> "Column":
    """What was changed, without what is empty; of a long list its length. -o json has all of it."""

    def cell(item: Item, now_us: int) -> str:
        value = item[field]
        if not isinstance(value, Mapping):
            return shown(value, now_us)
        said = (
            f"{name.replace('_', ' ')} {_brief(inner, now_us)}"
            for name, inner in value.items()
            if inner not in (None, "", [], False) and name != "change"
        )
        return ", ".join(said) or "-"

    return Column(field, header, cell=cell)


def _brief(value: Value, now_us: int) -> str:
    if isinstance(value, str) or not isinstance(value, Sequence):
        return shown(value, now_us)
    if any(isinstance(each, Mapping | list) for each in value):
        return f"({counted(len(value), 'entry', 'entries')})"
    return shown(value, now_us)


def _at(field: str, header: str) -> "Column":
    """A column with absolute times: an age says too little of a plan or of the end of a pause."""

    def cell(item: Item, _now_us: int) -> str:
        value = item[field]
        return value.rfc3339() if isinstance(value, Instant) else "-"

    return Column(field, header, cell=cell)


PLAN_KIND = Kind(
    "OperationPlan",
    (
        Column("summary", "PLAN"),
        Column("members", "MEMBERS"),
        Column("undoable", "UNDO", cell=_undo_of_plan),
        Column("revision", "REVISION"),
        Column("kind", "KIND", only_csv=True),
        Column("subject", "SUBJECT", only_csv=True),
        _at("planned_at", "PLANNED")._replace(only_csv=True),
    ),
    lambda item: str(item["subject"]),
)
_STREAM_PLAN_KIND = Kind(
    "StreamPlan",
    (
        Column("stream", "STREAM"),
        Column("floor", "FLOOR", right=True),
        Column("target", "TARGET", right=True, cell=_target),
        _bound("again"),
        _bound("passed"),
        Column("client_id", "HOLDER"),
    ),
    lambda item: str(item["stream"]),
)
_MOVE_KIND = Kind(
    "StreamMove",
    (
        Column("stream", "STREAM"),
        Column("from_client_id", "FROM"),
        Column("to_client_id", "TO"),
        Column("from_borrower_id", "FROM-BORROWER"),
        Column("to_borrower_id", "TO-BORROWER"),
    ),
    lambda item: str(item["stream"]),
)

_NUMBER, _KIND, _SUBJECT = (
    Column("number", "NUMBER", right=True),
    Column("kind", "KIND"),
    Column("subject", "SUBJECT"),
)
_STATE = Column("state", "STATE", styles=_STATE_STYLES)
_STREAMS = Column("streams_done", "STREAMS", right=True, cell=_streams_done)
_RECORDS = Column("records_done", "RECORDS", right=True, cell=_records_done)
_SUMMARY = Column("summary", "SUMMARY")
_MORE = (
    Column("revision", "REVISION", right=True, wide=True),
    Column("origin", "ORIGIN", wide=True),
    Column("operation_id", "OPERATION-ID", wide=True),
    Column("undoable", "UNDO", cell=_undo_of_operation, wide=True),
    Column("failure", "FAILURE", wide=True),
    Column("summary", "SUMMARY", wide=True),
)

OPERATION_KIND = Kind(
    "Operation",
    (
        _NUMBER,
        _KIND,
        _SUBJECT,
        _STATE,
        _RECORDS,
        Column("applied_at", "AGE", right=True),
        Column("principal", "BY"),
        Column("reason", "REASON"),
        *_MORE,
    ),
    lambda item: str(item["number"]),
)
"""For a listing, in which operations have no streams."""

APPLIED_KIND = Kind(
    "Operation", (_NUMBER, _KIND, _SUBJECT, _STATE, _STREAMS, _SUMMARY), OPERATION_KIND.identity
)
"""For a command that has just changed something."""

AS_PLANNED_KIND = Kind("Operation", (_NUMBER, _STATE, _STREAMS), OPERATION_KIND.identity)
"""For an operation whose plan was just shown on the same terminal."""

SHOWN_KIND = Kind(
    "Operation",
    (
        _NUMBER,
        _KIND,
        _SUBJECT,
        _STATE,
        _STREAMS,
        _RECORDS,
        _SUMMARY,
        Column("reason", "REASON"),
        Column("principal", "BY"),
        *(column for column in _MORE if column.field != "summary"),
        _at("applied_at", "APPLIED"),
        _at("ended_at", "ENDED"),
        Column("undoes", "UNDOES"),
        _fields("change", "CHANGE"),
        _fields("before", "BEFORE"),
        _fields("after", "AFTER"),
    ),
    OPERATION_KIND.identity,
)
_OPERATED_KIND = Kind(
    "OperatedStream",
    (
        Column("stream", "STREAM"),
        Column("done", "DONE"),
        Column("floor_before", "FLOOR-BEFORE", right=True),
        Column("floor_after", "FLOOR-AFTER", right=True),
        Column("client_id", "WAITS-FOR"),
    ),
    lambda item: str(item["stream"]),
)


def plan_item(plan: "OperationPlan") -> Item:
    """A plan as the renderer takes it; `ops apply` reads it back from a file."""
    from dss_client.operations import document_of

    return item_of("OperationPlan", plan, change=_value(document_of(plan.change)))


def plan_sections(plan: "OperationPlan") -> "Iterator[Section]":
    """The lists of a plan that are not empty."""
    if plan.streams:
        yield Section("streams", _STREAM_PLAN_KIND)
    if plan.moves:
        yield Section("moves", _MOVE_KIND)
    if plan.effects:
        yield Section("effects")


def operation_item(operation: "Operation") -> Item:
    """An operation as the renderer takes it."""
    details = {name: _parsed(getattr(operation, name)) for name in ("change", "before", "after")}
    streams = [_operated_item(each) for each in operation.streams]
    return item_of("Operation", operation, streams=streams, **details)


def operation_sections(operation: "Operation") -> "Iterator[Section]":
    """The lists of an operation that are not empty."""
    if operation.streams:
        yield Section("streams", _OPERATED_KIND)


def _operated_item(stream: "OperatedStream") -> Item:
    before = stream.before.floor if stream.before else None
    after = stream.after.floor if stream.after else None
    return item_of("OperatedStream", stream, floor_before=before, floor_after=after)


def _parsed(text: str) -> Value:
    """JSON of the daemon; as text where it is none."""
    try:
        return _value(json.loads(text)) if text else None
    except ValueError:
        return text


def _value(parsed: object) -> Value:
    """Parsed JSON as the renderer takes it."""
    match parsed:
        case dict():
            return {str(name): _value(inner) for name, inner in parsed.items()}
        case list():
            return [_value(inner) for inner in parsed]
        case None | bool() | int() | float() | str():
            return parsed
        case _:
            raise TypeError(f"no JSON: {parsed!r}")
