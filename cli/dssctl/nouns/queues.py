"""Retries and dead letters: what each field means, and how a table shows it."""

from typing import TYPE_CHECKING

from dss_core.times import text_of_span
from dssctl.fields.model import (
    Field,
    Fields,
    Type,
    anything,
    items,
    moment,
    number,
    size,
    text,
    texts,
    truth,
)
from dssctl.items import item_of
from dssctl.output import Column, Instant, Item, Kind
from dssctl.output.model import size as size_cell
from dssctl.records.items import bytes_columns, bytes_fields, header_items, shown_headers
from dssctl.records.payloads import Decoding, payload_cell, payload_fields

if TYPE_CHECKING:
    from dss_client import ErrorCount, KeyCount, QueueEntry

ERROR_CELL_CHARS = 60
FINGERPRINT_DIGITS = 8
"""A table shows the beginning of an error, and enough digits to tell the errors of a group
apart."""

QUEUE_ENTRY: Fields = (
    text("stream", "The stream of the failed record."),
    number("offset", "Its offset there."),
    text("level", "retry or dead."),
    number("queue_offset", "The entry's offset in its queue."),
    text("subject", "What the record is about."),
    text("key", "Its ordering key, where it is text.", optional=True),
    text("key_base64", "Its ordering key, where it is no text.", absent=True),
    size("payload_bytes", "How long its content is."),
    number("attempt", "Attempts that failed."),
    number("redrives", "How often it came back from the dead letters."),
    text("cause", "refused, rejected, ack wait, died, given up or redriven."),
    text("error_type", "What kind of error it was.", optional=True),
    text("error", "What the error said.", optional=True),
    text("fingerprint", "The same for errors that differ in numbers only.", optional=True),
    text("client_id", "The client that had it last.", optional=True),
    moment("appended_at", "When the record was appended."),
    moment("first_failure_at", "When it failed first.", optional=True),
    moment("entered_at", "When it entered this queue: after its last failure."),
    moment(
        "due_at",
        "When it is sent again, in a retry queue; none for one that waits behind its key.",
        optional=True,
    ),
    Field("headers", Type.ITEMS, "Its headers, in their order; of peek.", "Header", absent=True),
    anything("payload", "Its content; of peek.", optional=True, absent=True),
    text("payload_base64", "Its content, where it is no text; of peek.", absent=True),
    text("decoded_as", "text, json or hex; of peek.", absent=True),
)

QUEUE_ERROR: Fields = (
    number("count", "Number of entries."),
    truth("count_exact", "Whether all were counted; else a lower bound."),
    text("error_type", "What kind of error it is.", optional=True),
    text("error", "What the newest of them said.", optional=True),
    text("cause", "Why the newest entered the queue."),
    text("fingerprint", "Selects it by --error; without one, use the cause.", optional=True),
    moment("newest_at", "When the newest entered the queue."),
    moment("oldest_at", "When the oldest entered it.", optional=True),
    text("stream", "The stream of the newest record.", optional=True),
    number("offset", "Its offset there."),
)

QUEUE_KEY: Fields = (
    text("key", "The ordering key, where it is text; none of records without one.", optional=True),
    text("key_base64", "The ordering key, where it is no text.", absent=True),
    number("count", "Number of entries."),
    truth("count_exact", "Whether all were counted; else a lower bound."),
    text("stream", "The stream of the oldest record: the first that failed."),
    number("offset", "Its offset there."),
    text("error_type", "What kind of error the oldest had.", optional=True),
    text("error", "What that error said.", optional=True),
    text("cause", "Why the oldest entered the queue."),
    text("fingerprint", "Selects the error by --error; without one, use the cause.", optional=True),
    moment("newest_at", "When the newest entered the queue."),
    moment("oldest_at", "When the oldest entered it."),
)

QUEUE_PAGE: Fields = (
    text("group", "NAME@FILTER of the group."),
    text("level", "retry or dead."),
    number("total", "Number of records."),
    moment("oldest_at", "When the oldest counted one entered the queue.", optional=True),
    moment("newest_at", "When the newest entered the queue.", optional=True),
    number("max_deliver", "Failures that make a record a dead letter."),
    truth("ordered", "Whether the group keeps the order of keys."),
    text("on_dead_letter", "block or skip; none in a group without order.", optional=True),
    truth("counts_exact", "Whether all were counted; else counts are lower bounds."),
    items("errors", "QueueError", "The most frequent errors."),
    items("keys", "QueueKey", "The keys with most entries."),
    texts("next", "Commands that show more, or act."),
)


def identity(item: Item) -> str:
    """The stream of the failed record."""
    return f"{item['stream']}@{item['offset']}"


def error_words(item: Item) -> str:
    """What went wrong, in a line."""
    told = ": ".join(str(item[field]) for field in ("error_type", "error") if item[field])
    return told or str(item["cause"])


def error_name(item: Item) -> str:
    """What names the error for --error."""
    return str(item["fingerprint"] or item["cause"])[:FINGERPRINT_DIGITS]


def _count_cell(item: Item, _now_us: int) -> str:
    return f"{'' if item['count_exact'] else '>='}{item['count']}"


def _error_cell(item: Item, _now_us: int) -> str:
    words = " ".join(error_words(item).split())
    return words if len(words) <= ERROR_CELL_CHARS else f"{words[:ERROR_CELL_CHARS]}..."


def _has_time(entry: "QueueEntry") -> bool:
    """An entry that waits behind its key has no due time of its own."""
    return bool(entry.due_ms) or entry.cause != "follows"


def _due_cell(item: Item, now_us: int) -> str:
    due = item["due_at"]
    if not isinstance(due, Instant):
        return "-"
    return "now" if due.us <= now_us else f"in {text_of_span((due.us - now_us) // 1_000)}"


_ORIGIN = (
    Column("stream", "ORIGIN", cell=lambda item, _now_us: identity(item)),
    Column("offset", "OFFSET", only_csv=True),
    *bytes_columns("key"),
)
_ERROR = Column("error", "ERROR", cell=_error_cell)
_WIDE = (
    Column("subject", "SUBJECT", wide=True),
    Column("payload_bytes", "SIZE", right=True, wide=True, cell=size_cell("payload_bytes")),
    Column("cause", "CAUSE", wide=True),
    Column("error_type", "TYPE", only_csv=True),
    Column("fingerprint", "FINGERPRINT", wide=True),
    Column("redrives", "REDRIVES", right=True, wide=True),
    Column("client_id", "CLIENT", wide=True),
    Column("appended_at", "APPENDED", right=True, wide=True),
    Column("first_failure_at", "FAILED-FIRST", right=True, wide=True),
    Column("queue_offset", "QUEUE-OFFSET", right=True, wide=True),
)
_DEAD = (
    *_ORIGIN,
    Column("attempt", "ATTEMPTS", right=True),
    _ERROR,
    Column("entered_at", "DIED", right=True),
    *_WIDE,
)

DEAD_KIND = Kind("QueueEntry", _DEAD, identity)
RETRY_KIND = Kind(
    "QueueEntry",
    (
        *_ORIGIN,
        Column("attempt", "ATTEMPTS", right=True),
        Column("due_at", "DUE", right=True, cell=_due_cell),
        _ERROR,
        Column("entered_at", "FAILED", right=True),
        *_WIDE,
    ),
    identity,
)
PEEK_KIND = Kind(
    "QueueEntry",
    (
        *_DEAD,
        Column("headers", "HEADERS", wide=True, cell=shown_headers),
        Column("payload", "PAYLOAD", cell=payload_cell(whole=False)),
        Column("payload_base64", "PAYLOAD_BASE64", only_csv=True),
    ),
    identity,
)
PAGE_KIND = Kind(
    "QueueEntry",
    (
        *(column._replace(wide=False) for column in _DEAD if not column.only_csv),
        Column("headers", "HEADERS", cell=shown_headers),
        Column("payload", "PAYLOAD", only_csv=True),
        Column("payload_base64", "PAYLOAD_BASE64", only_csv=True),
    ),
    identity,
)
"""One entry, whose payload has a section of its own."""

ERROR_KIND = Kind(
    "QueueError",
    (
        Column("count", "COUNT", right=True, cell=_count_cell),
        _ERROR,
        Column("oldest_at", "OLDEST", right=True),
        Column("newest_at", "NEWEST", right=True),
        Column("cause", "CAUSE"),
        Column("error_type", "TYPE", only_csv=True),
        Column("fingerprint", "FINGERPRINT"),
        Column("stream", "EXAMPLE", cell=lambda item, _now_us: _example(item)),
        Column("offset", "OFFSET", only_csv=True),
    ),
    error_name,
)

KEY_KIND = Kind(
    "QueueKey",
    (
        *bytes_columns("key"),
        Column("count", "COUNT", right=True, cell=_count_cell),
        Column("stream", "FIRST", cell=lambda item, _now_us: _example(item)),
        Column("offset", "OFFSET", only_csv=True),
        _ERROR,
        Column("oldest_at", "OLDEST", right=True),
        Column("newest_at", "NEWEST", right=True),
        Column("cause", "CAUSE", wide=True),
        Column("fingerprint", "FINGERPRINT", wide=True),
        Column("error_type", "TYPE", only_csv=True),
    ),
    lambda item: str(item["key"]),
)

QUEUE_PAGE_KIND = Kind(
    "Queue",
    (
        Column("group", "GROUP"),
        Column("level", "LEVEL"),
        Column("total", "RECORDS"),
        Column("oldest_at", "OLDEST"),
        Column("newest_at", "NEWEST"),
        Column("max_deliver", "MAX-DELIVER"),
        Column("ordered", "ORDERED"),
        Column("on_dead_letter", "ON-DEAD-LETTER"),
        Column("counts_exact", "COUNTS-EXACT"),
    ),
    lambda item: str(item["group"]),
)
"""How a queue of a group stands, on a page."""


def entry_item(entry: "QueueEntry") -> Item:
    """An entry as the renderer takes it."""
    key = bytes_fields("key", entry.key)
    item = item_of(
        "QueueEntry",
        entry,
        key=key["key"],
        first_failure_at=_moment(entry.first_failure_ms),
        due_at=_moment(entry.due_ms) if entry.level == "retry" and _has_time(entry) else None,
    )
    return {**item, **key}


def whole_item(entry: "QueueEntry", decoding: Decoding) -> Item:
    """The same, with payload and headers."""
    return {
        **entry_item(entry),
        "headers": header_items(entry.headers),
        **payload_fields(entry.payload, decoding),
    }


def error_item(counted: "ErrorCount", *, exact: bool = True) -> Item:
    """How many entries there are of an error, as the renderer takes it."""
    return item_of("QueueError", counted, count_exact=exact)


def key_item(counted: "KeyCount", *, exact: bool = True) -> Item:
    """How many entries there are of a key, as the renderer takes it."""
    key = bytes_fields("key", counted.key)
    item = item_of("QueueKey", counted, key=key["key"], count_exact=exact)
    return {**item, **key}


def _example(item: Item) -> str:
    return identity(item) if item["stream"] else "-"


def _moment(at_ms: int) -> Instant | None:
    return Instant.of_ms(at_ms) if at_ms else None
