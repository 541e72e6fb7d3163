"""What is in a payload: JSON, other text, or bytes, found out or as a person says.

Invariant: nothing that leaves here for a terminal has a raw control character; the renderer
escapes text, and bytes are shown in hex. A payload is untrusted, so JSON that our own output could
not repeat (NaN, a number out of range, nesting without end) counts as text.
"""

import json
from base64 import b64decode
from collections.abc import Iterable, Iterator
from enum import StrEnum

from dssctl.output.escape import quoted
from dssctl.output.model import Cell, Item, Value
from dssctl.records.items import bytes_fields

JSON_DEPTH_MAX = 64
"""Nesting of a payload that is shown as JSON; what is deeper is shown as text."""

PAYLOAD_CELL_CHARS = 120
"""Of a payload in a table; two lines of a usual terminal."""


_HEX_LINE_BYTES = 16


class Decoding(StrEnum):
    """How payloads are shown."""

    AUTO = "auto"
    TEXT = "text"
    JSON = "json"
    HEX = "hex"


def payload_fields(payload: bytes, decoding: Decoding) -> Item:
    """The payload, how it was decoded, and its size."""
    facts = {"payload_bytes": len(payload)}
    match decoding:
        case Decoding.TEXT:
            text = payload.decode(errors="backslashreplace")
            return {"payload": text, "decoded_as": "text", **facts}
        case Decoding.HEX:
            return {"payload": payload.hex(), "decoded_as": "hex", **facts}
        case Decoding.JSON | Decoding.AUTO:
            document = _document(payload)
            if document is None:
                fields = bytes_fields("payload", payload)
                kind = "text" if fields["payload"] is not None else "hex"
                return {**fields, "decoded_as": kind, **facts}
            shown = document if decoding is Decoding.JSON else payload.decode()
            return {"payload": shown, "decoded_as": "json", **facts}


def payload_cell(*, whole: bool) -> Cell:
    """A cell that shows a payload; cut where it is long, unless all of it is wanted."""

    def cell(item: Item, _now_us: int) -> str:
        text = _cell_text(item)
        if whole or len(text) <= PAYLOAD_CELL_CHARS:
            return text
        return f"{text[:PAYLOAD_CELL_CHARS]}... ({item['payload_bytes']} bytes)"

    return cell


def payload_lines(payload: bytes, decoding: Decoding) -> Iterator[str]:
    """A payload as a page shows it: indented JSON, lines of text, or hex beside characters."""
    decoded_as = payload_fields(payload, decoding)["decoded_as"]
    if decoded_as == "hex":
        yield from _hex_lines(payload)
    elif decoded_as == "json":
        yield from json.dumps(_document(payload), ensure_ascii=False, indent=2).split("\n")
    else:
        yield from payload.decode(errors="backslashreplace").split("\n")


def _cell_text(item: Item) -> str:
    encoded = item.get("payload_base64")
    if encoded is not None:
        return f"hex:{b64decode(str(encoded)).hex()}"
    payload = item["payload"]
    if item["decoded_as"] == "hex":
        return f"hex:{payload}"
    return quoted(payload) if isinstance(payload, str) else _compact(payload)


def _compact(document: Value) -> str:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def _document(payload: bytes) -> Value:
    """A JSON object or list; None where it is none that can be shown again."""
    if payload.lstrip()[:1] not in (b"{", b"["):
        return None
    try:
        document: Value = json.loads(payload.decode(), parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError):
        return None
    return document if _is_flat(document) else None


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _finite(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise ValueError(digits)
    return value


def _is_flat(document: Value) -> bool:
    """Whether it is nested so little that it can be walked by recursion."""
    level: list[Value] = [document]
    for _ in range(JSON_DEPTH_MAX):
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return True
    return False


def _inside(document: Value) -> Iterable[Value]:
    """What an object or a list holds; nothing for anything else."""
    if isinstance(document, dict):
        return document.values()
    return document if isinstance(document, list) else ()


def _hex_lines(payload: bytes) -> Iterator[str]:
    for at in range(0, len(payload), _HEX_LINE_BYTES):
        row = payload[at : at + _HEX_LINE_BYTES]
        characters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        yield f"{at:06x}  {row.hex(' '):<{_HEX_LINE_BYTES * 3 - 1}}  {characters}"
