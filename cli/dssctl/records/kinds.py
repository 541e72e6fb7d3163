"""Records as tables and pages show them."""

from dssctl.cells import REASON_STYLES
from dssctl.output import Column, Instant, Item, Kind
from dssctl.records.items import (
    bytes_columns,
    bytes_fields,
    header_items,
    identity,
    shown_headers,
    text_column,
)
from dssctl.records.looking import Found
from dssctl.records.payloads import Decoding, payload_cell, payload_fields

_PLACE = (
    Column("stream", "STREAM", width=14),
    Column("offset", "OFFSET", right=True, width=8),
    Column("appended_at", "AGE", right=True, width=27),
    text_column("subject", width=18),
    *bytes_columns("key", width=12),
)
_FACTS = (
    Column("timestamp", "SENT", right=True, width=27, wide=True),
    Column("headers", "HEADERS", width=12, wide=True, cell=shown_headers),
    Column("payload_bytes", "BYTES", right=True, width=7, wide=True),
    Column("decoded_as", "AS", width=4, wide=True),
)
_ENCODED = Column("payload_base64", "PAYLOAD_BASE64", only_csv=True)

STORED_KIND = Kind(
    "StoredRecord",
    (*_PLACE, *_FACTS, Column("payload", "PAYLOAD", cell=payload_cell(whole=False)), _ENCODED),
    identity,
)
WHOLE_KIND = Kind(
    "StoredRecord",
    (*_PLACE, *_FACTS, Column("payload", "PAYLOAD", cell=payload_cell(whole=True)), _ENCODED),
    identity,
)
"""The same, with payloads of any length."""

PLACED_KIND = Kind(
    "StoredRecord",
    (
        *_PLACE,
        *_FACTS,
        Column("group", "GROUP", width=8, wide=True),
        Column("code", "WHY", width=12, styles=REASON_STYLES),
        Column("client_id", "CLIENT", width=8),
        Column("attempt", "ATTEMPT", right=True, width=7),
        Column("payload", "PAYLOAD", cell=payload_cell(whole=False)),
        Column("sentence", "IN-WORDS", wide=True),
        _ENCODED,
    ),
    identity,
)
"""The same, with where the record is for one group."""

PAGE_KIND = Kind(
    "StoredRecord",
    (
        *_PLACE[:2],
        Column("appended_at", "APPENDED", cell=lambda item, _now_us: _moment(item["appended_at"])),
        *_PLACE[3:],
        Column("timestamp", "SENT", cell=lambda item, _now_us: _moment(item["timestamp"])),
        *_FACTS[1:],
        Column("payload", "PAYLOAD", only_csv=True),
        _ENCODED,
    ),
    identity,
)
"""The same, where the payload has a section of its own."""

SKIPPED_KIND = Kind(
    "SkippedRecords",
    (
        Column("operation", "OPERATION", right=True),
        Column("kind", "KIND"),
        Column("stream", "STREAM"),
        Column("offset", "FROM", right=True),
        Column("count", "RECORDS", right=True),
        Column("applied_at", "AGE", right=True),
        Column("principal", "BY"),
        Column("reason", "REASON"),
        Column("undoable", "UNDOABLE", wide=True),
    ),
    lambda item: str(item["operation"]),
)
"""What operators passed over."""


def found_item(found: Found, decoding: Decoding) -> Item:
    """A record as the renderer takes it."""
    return {
        "stream": found.stream,
        "offset": found.offset,
        "subject": found.subject,
        **bytes_fields("key", found.key),
        **payload_fields(found.payload, decoding),
        "headers": header_items(found.headers),
        "timestamp": Instant(found.timestamp_us),
        "appended_at": Instant(found.append_time_us),
    }


def _moment(value: object) -> str:
    return value.rfc3339() if isinstance(value, Instant) else "-"
