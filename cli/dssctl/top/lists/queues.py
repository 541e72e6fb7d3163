"""Dead letters and retry queues: errors, then keys, then records, then one record.

Failed records are shown by error first: each row opens its part. Invariant: a row names the records
that it stands for, so an action on it is about exactly those.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from dssctl.output.escape import escaped
from dssctl.top.lists.details import LABEL_WIDTH, DetailRow, detail_rows, details, numbered
from dssctl.top.lists.listing import Column, Listing, Pen, Scene
from dssctl.top.model.places import Ordering, Place
from dssctl.top.paint import amounts
from dssctl.top.paint.payloads import payload_lines

if TYPE_CHECKING:
    from dss_client import ErrorCount, KeyCount, QueueEntry


def error_name(row: "ErrorCount | QueueEntry") -> str:
    """The name of the error: its fingerprint, or the cause if it has none."""
    return row.fingerprint or row.cause


def _words(row: "ErrorCount | KeyCount | QueueEntry") -> str:
    told = ": ".join(filter(None, (row.error_type, row.error))) or row.cause
    return " ".join(escaped(told).split())


def _key(row: "KeyCount | QueueEntry") -> str:
    return "-" if row.key is None else escaped(row.key.decode(errors="backslashreplace"))


def record_name(row: "QueueEntry") -> str:
    """The place of the failed record: stream and offset."""
    return f"{row.stream}@{row.offset}"


def _age(at_us: int, pen: Pen) -> str:
    return amounts.age(at_us // 1_000 if at_us else None, pen.now_ms)


def _errors(scene: Scene) -> "Mapping[str, ErrorCount]":
    found = scene.answer.errors if scene.answer else ()
    return {error_name(each): each for each in found}


def _keys(scene: Scene) -> "Mapping[str, KeyCount]":
    found = scene.answer.keys if scene.answer else ()
    return {repr(each.key): each for each in found}


def _dead(scene: Scene) -> "Mapping[str, QueueEntry]":
    found = scene.answer.entries if scene.answer else ()
    return {record_name(each): each for each in found if each.level == "dead"}


def _waiting(scene: Scene) -> "Mapping[str, QueueEntry]":
    found = scene.answer.entries if scene.answer else ()
    return {record_name(each): each for each in found if each.level == "retry"}


def _letter(scene: Scene) -> "QueueEntry | None":
    found = scene.answer.entries if scene.answer else ()
    return next((each for each in found if record_name(each) == scene.place.name), None)


def _entry_facts(row: "QueueEntry", pen: Pen) -> Sequence[tuple[str, str]]:
    facts = [
        ("record", escaped(record_name(row))),
        ("subject", escaped(row.subject)),
        ("key", _key(row)),
        ("failed", f"{row.attempt} times, first {_age(row.first_failure_ms * 1_000, pen)} ago"),
        ("error", _words(row)),
        ("cause", escaped(row.cause)),
        ("fingerprint", row.fingerprint or "none"),
        ("had it last", escaped(row.client_id) or "-"),
        ("came here", f"{_age(row.entered_at_us, pen)} ago"),
        ("appended", amounts.moment(row.appended_at_us // 1_000)),
        ("redriven", f"{row.redrives} times"),
    ]
    if row.level == "retry" and row.due_ms:
        facts.append(("due", _due(row, pen)))
    return facts


def _due(row: "QueueEntry", pen: Pen) -> str:
    left_ms = row.due_ms - pen.now_ms
    if not row.due_ms:
        return "-"
    return "now" if left_ms <= 0 else amounts.span(left_ms)


def _letter_rows(scene: Scene) -> Mapping[str, DetailRow]:
    found = _letter(scene)
    if found is None:
        return {}
    rows = detail_rows(_entry_facts(found, scene.pen), scene.width)
    for name, value in found.headers:
        text = f"{escaped(name)}: {escaped(value.decode(errors='backslashreplace'))}"
        rows += detail_rows([("header", text)], scene.width)
    shape, lines = payload_lines(found.payload, max(20, scene.width - LABEL_WIDTH - 2))
    rows.append(DetailRow("payload", f"{amounts.size(found.payload_bytes)}, {shape}"))
    rows += [DetailRow("", each) for each in lines]
    return numbered(rows)


LETTER = details("Dead letter", _letter_rows, "this record is not there any more")


def _of_error(place: Place, key: str, _row: "ErrorCount") -> Place:
    return Place("dead-keys", group=place.group, name=key)


def _of_key(place: Place, _key: str, row: "KeyCount") -> Place:
    name = place.name if place.noun == "dead-keys" else ""
    return Place("dead-records", group=place.group, name=name, key=row.key)


def _of_record(place: Place, key: str, _row: "QueueEntry") -> Place:
    return Place("dead-letter", group=place.group, name=key)


ERRORS: "Listing[ErrorCount]" = Listing(
    title="Errors",
    columns=(
        Column("count", "COUNT", 7, lambda row: row.count, right=True),
        Column("error", "ERROR", 24, _words, lambda row, _pen: _words(row), grows=True,
            rises=True),
        Column("newest", "NEWEST", 7, lambda row: -row.newest_us,
            lambda row, pen: _age(row.newest_us, pen), right=True),
        Column("oldest", "OLDEST", 7, lambda row: -row.oldest_us,
            lambda row, pen: _age(row.oldest_us, pen), right=True, rank=2),
        Column("cause", "CAUSE", 9, lambda row: row.cause, rank=1, rises=True),
        Column("example", "EXAMPLE", 14,
            lambda row: f"{row.stream}@{row.offset}" if row.stream else "-", rank=3, rises=True),
    ),
    rows=_errors,
    order=Ordering("count"),
    opens=_of_error,
    fault=lambda _row: True,
    empty="no dead letter",
)  # fmt: skip

KEYS: "Listing[KeyCount]" = Listing(
    title="Keys",
    columns=(
        Column("key", "KEY", 14, _key, lambda row, _pen: _key(row), grows=True, rises=True),
        Column("count", "COUNT", 7, lambda row: row.count, right=True),
        Column("first", "FIRST", 16, lambda row: f"{row.stream}@{row.offset}", rank=1, rises=True),
        Column("error", "ERROR OF THE FIRST", 20, _words, lambda row, _pen: _words(row),
            grows=True, rises=True),
        Column("newest", "NEWEST", 7, lambda row: -row.newest_us,
            lambda row, pen: _age(row.newest_us, pen), right=True, rank=2),
    ),
    rows=_keys,
    order=Ordering("count"),
    opens=_of_key,
    empty="no dead letter",
)  # fmt: skip


def _records(title: str, rows: "Callable[[Scene], Mapping[str, QueueEntry]]",
             time: "Column[QueueEntry]", empty: str) -> "Listing[QueueEntry]":  # fmt: skip
    return Listing(
        title=title,
        columns=(
            Column("record", "RECORD", 16, record_name, rises=True),
            Column("key", "KEY", 12, _key, lambda row, _pen: _key(row), rises=True),
            Column("attempts", "TRIED", 5, lambda row: row.attempt,
                lambda row, _pen: str(row.attempt), right=True),
            Column("error", "ERROR", 20, _words, lambda row, _pen: _words(row), grows=True,
                rises=True),
            time,
            Column("client", "CLIENT", 10, lambda row: row.client_id, rank=2, rises=True),
        ),
        rows=rows,
        order=Ordering(time.name, descending=False),
        opens=_of_record,
        fault=lambda _row: True,
        facts=_entry_facts,
        empty=empty,
    )  # fmt: skip


RECORDS = _records(
    "Records", _dead,
    Column("died", "DIED", 7, lambda row: -row.entered_at_us,
        lambda row, pen: _age(row.entered_at_us, pen), right=True, rises=True),
    "no dead letter",
)  # fmt: skip
WAITING = _records(
    "Retries", _waiting,
    Column("due", "DUE", 7, lambda row: row.due_ms, lambda row, pen: _due(row, pen), right=True,
        rises=True),
    "nothing waits for a next attempt",
)  # fmt: skip
