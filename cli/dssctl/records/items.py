"""The parts of a record as the renderer takes them, with the columns that show them.

Invariant: no byte is lost. What is UTF-8 is text; what is not is in base64 in a field of its own.
"""

import base64
import json
from functools import partial
from typing import TYPE_CHECKING

from dssctl.output import Column, Instant, Item
from dssctl.output.escape import quoted

if TYPE_CHECKING:
    from dss_client import Record


def text_column(field: str, *, width: int = 0) -> Column:
    """Of a field that is text, or base64 under another name."""
    return Column(field, field.upper(), width=width, cell=partial(_shown_text, field=field))


def bytes_columns(field: str, *, width: int = 0) -> tuple[Column, Column]:
    """Of a field of bytes, as text and as base64."""
    encoded = f"{field}_base64"
    return text_column(field, width=width), Column(encoded, encoded.upper(), only_csv=True)


def shown_headers(item: Item, _now_us: int) -> str:
    """The headers in one cell."""
    return json.dumps(item["headers"], ensure_ascii=False) if item["headers"] else "-"


def bytes_fields(name: str, value: bytes | None) -> Item:
    """Text where it is UTF-8; what is not goes to a field of its own, so that nothing is lost."""
    if value is None:
        return {name: None}
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {name: None, f"{name}_base64": base64.b64encode(value).decode()}


def record_item(record: "Record") -> Item:
    """A record as the renderer takes it."""
    return {
        "stream": record.stream,
        "offset": record.offset,
        "subject": record.subject,
        **bytes_fields("key", record.key),
        **bytes_fields("payload", record.payload),
        "headers": header_items(record.headers),
        "timestamp": Instant(record.timestamp_us),
    }


def header_items(headers: tuple[tuple[str, bytes], ...]) -> list[Item]:
    """Headers as a list, in order, repeats kept."""
    return [{"name": name, **bytes_fields("value", value)} for name, value in headers]


def identity(item: Item) -> str:
    """A record's stream and offset."""
    return f"{item['stream']}@{item['offset']}"


def _shown_text(item: Item, _now_us: int, *, field: str) -> str:
    encoded = item.get(f"{field}_base64")
    if encoded is not None:
        return f"base64:{encoded}"
    value = item[field]
    return "-" if value is None else quoted(str(value))
