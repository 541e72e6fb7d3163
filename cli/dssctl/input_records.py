"""Turns lines of the input into records.

Invariant: a line becomes one record, or is named as broken; if a field that was asked for by name
is missing, the line is broken, so that the record's order or subject is not silently lost.
"""

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from dss_core.errors import BrokenInputLine

WHOLE_LINE = "."
"""As payload field: the line itself is the payload."""


class InputFormat(StrEnum):
    """The format of input lines."""

    LINES = "lines"
    """The payload."""
    JSONL = "jsonl"
    """A JSON object with the record's fields."""


JSON_ENDS = (".json", ".jsonl", ".ndjson")
"""Endings of names of files whose lines are JSON: read as payloads, they would silently have no
keys."""


def format_of(path: str) -> InputFormat:
    """The format of a file's lines, by its name."""
    return InputFormat.JSONL if path.lower().endswith(JSON_ENDS) else InputFormat.LINES


@dataclass(frozen=True, slots=True)
class InputRecord:
    """A record about to be published."""

    payload: bytes
    key: bytes | None
    subject: str | None
    """None: the topic's name."""
    headers: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class Fields:
    """Which fields of a JSON object are the parts of a record. None: the usual name, if it is
    there."""

    payload: str | None = None
    key: str | None = None
    subject: str | None = None


Parser = Callable[[int, bytes], InputRecord]


def line_parser(key: bytes | None, subject: str | None) -> Parser:
    """Every line is a payload; key and subject are the same for all."""
    return lambda _number, line: InputRecord(payload=line, key=key, subject=subject)


def json_parser(fields: Fields, key: bytes | None, subject: str | None) -> Parser:
    """Every line is a JSON object; key and subject are for lines that have none of their own."""

    def parse(number: int, line: bytes) -> InputRecord:
        try:
            document = _object(line)
            own_key = _bytes_field(document, fields.key, "key")
            own_subject = _subject(document, fields.subject)
            return InputRecord(
                payload=_payload(document, fields.payload, line),
                key=key if own_key is None else own_key,
                subject=subject if own_subject is None else own_subject,
                headers=_headers(document),
            )
        except _BrokenError as broken:
            raise BrokenInputLine(line=number, reason=broken) from broken

    return parse


class _BrokenError(ValueError):
    """Why a line is not a record; the caller knows which line it is."""


def _object(line: bytes) -> Mapping[str, object]:
    if not line.strip():
        raise _BrokenError("it is empty")
    try:
        document = json.loads(line)
    except UnicodeDecodeError as error:
        raise _BrokenError("it is not UTF-8") from error
    except (json.JSONDecodeError, RecursionError) as error:
        raise _BrokenError(f"it is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise _BrokenError("it is not a JSON object")
    return document


def _payload(document: Mapping[str, object], field: str | None, line: bytes) -> bytes:
    if field == WHOLE_LINE:
        return line
    payload = _bytes_field(document, field or "payload", "payload")
    if payload is None:
        raise _BrokenError(f"its field {field or 'payload'} is null")
    return payload


def _subject(document: Mapping[str, object], field: str | None) -> str | None:
    if field is not None and field not in document:
        raise _BrokenError(f"it has no field {field}")
    value = document.get(field or "subject")
    if value is not None and not isinstance(value, str):
        raise _BrokenError("its subject is not text")
    return value


def _bytes_field(document: Mapping[str, object], field: str | None, usual: str) -> bytes | None:
    """A key or a payload: text, a number, base64 in a field of its own; other JSON as written."""
    name = field or usual
    encoded = document.get(f"{name}_base64")
    if encoded is not None:
        return _decoded(encoded, f"{name}_base64")
    if field is not None and field not in document:
        raise _BrokenError(f"it has no field {field}")
    value = document.get(name)
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    return _utf8(text)


def _headers(document: Mapping[str, object]) -> tuple[tuple[str, bytes], ...]:
    listed = document.get("headers") or []
    if not isinstance(listed, list):
        raise _BrokenError("its headers are not a list")
    return tuple(_header(entry) for entry in listed)


def _header(entry: object) -> tuple[str, bytes]:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        raise _BrokenError("a header has no name")
    value = _bytes_field(entry, None, "value")
    if value is None:
        raise _BrokenError(f"header {entry['name']} has no value")
    return entry["name"], value


def _decoded(encoded: object, name: str) -> bytes:
    if not isinstance(encoded, str):
        raise _BrokenError(f"its field {name} is not text")
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _BrokenError(f"its field {name} is not base64") from error


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise _BrokenError("it holds half a surrogate pair") from error
