"""JSON files that the tool wrote and reads again: plans and exported offsets.

Invariant: a file with wrong contents is refused with a reason, before the daemon is asked anything.
"""

import json
import os
from collections.abc import Callable
from typing import TypeVar

from dss_core.errors import DocumentUnreadable, DssError, InputUnreadable
from dssctl.input_lines import opened

DOCUMENT_BYTES_MAX = 64 << 20
"""The largest file: a plan, or offsets of 65,536 streams with some 100 acknowledged ranges each,
are smaller."""


Fields = dict[str, object]
Read = TypeVar("Read")


class WrongField(Exception):
    """A field is missing, or has another type. It never leaves `read_document`."""


def read_document(
    path: str, kind: str, what: str, command: str, build: Callable[[Fields], Read]
) -> Read:
    """The result of `build` for the item in a file of this kind; ``-`` is standard input.

    Raises:
        InputUnreadable: there is no such file, or it cannot be read.
        DocumentUnreadable: it has wrong contents.
    """
    text = _text(path)
    try:
        return build(_item(json.loads(text), kind))
    except (ValueError, WrongField, DssError) as problem:
        reason = str(problem).rstrip(".")
        raise DocumentUnreadable(path=path, what=what, reason=reason, command=command) from problem


def _item(document: object, kind: str) -> Fields:
    if not isinstance(document, dict) or document.get("kind") != kind:
        raise WrongField(f"its kind is not {kind}")
    return fields_of(document, "item")


def fields_of(document: Fields, name: str) -> Fields:
    """An object inside another."""
    value = document.get(name)
    if not isinstance(value, dict):
        raise WrongField(f"{name} is no object")
    return value


def text_of(document: Fields, name: str) -> str:
    """A text field."""
    value = document.get(name)
    if not isinstance(value, str):
        raise WrongField(f"{name} is no text")
    return value


def number_of(document: Fields, name: str) -> int:
    """A field that counts from 0."""
    return _counted(document.get(name), name)


def numbers_of(values: object, name: str, count: int) -> tuple[int, ...]:
    """A list of this many numbers."""
    if not isinstance(values, list) or len(values) != count:
        raise WrongField(f"{name} is no list of {count} numbers")
    return tuple(_counted(value, name) for value in values)


def objects_of(document: Fields, name: str) -> list[Fields]:
    """A list of objects."""
    values = list_of(document, name)
    if not all(isinstance(value, dict) for value in values):
        raise WrongField(f"{name} holds something that is no object")
    return [value for value in values if isinstance(value, dict)]


def list_of(document: Fields, name: str) -> list[object]:
    """A list."""
    values = document.get(name)
    if not isinstance(values, list):
        raise WrongField(f"{name} is no list")
    return values


def _counted(value: object, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise WrongField(f"{name} is no number from 0")
    return value


def _text(path: str) -> bytes:
    chunks: list[bytes] = []
    size = 0
    with opened(path) as descriptor:
        try:
            while chunk := os.read(descriptor, 1 << 20):
                chunks.append(chunk)
                size += len(chunk)
                if size > DOCUMENT_BYTES_MAX:
                    reason = f"it is longer than {DOCUMENT_BYTES_MAX} bytes"
                    raise InputUnreadable(path=path, reason=reason)
        except OSError as failed:
            raise InputUnreadable(path=path, reason=failed.strerror) from failed
    return b"".join(chunks)
