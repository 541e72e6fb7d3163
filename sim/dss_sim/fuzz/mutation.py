"""Draws inputs: examples of a parser, changed in the ways that break parsers.

Invariant: the same random numbers give the same input. This module knows no parser.
"""

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

INPUT_BYTES_MAX = 64 << 10
"""Longer inputs find nothing that these do not, and take all the time."""

_CHANGES_MAX = 6
"""Most inputs that reach far into a parser differ from an example in few places."""

_PIECE_BYTES_MAX = 64

_NUMBERS = (0, 1, 2, 7, 8, 127, 128, 255, 256, 1 << 15, 1 << 16, (1 << 31) - 1, 1 << 31)
_LARGE = ((1 << 32) - 1, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)

_PIECES = (
    b"\0",
    b"\xff",
    b"\xc3\x28",
    b"\xed\xa0\x80",
    b"\n",
    b"\r",
    b"\\",
    b'"',
    b"'",
    b"[" * 200,
    b"{}",
    b"null",
    b"NaN",
    b"-1",
    b"1e999",
    b"9" * 40,
    "\u0663\u00b2\ufeff\u202e\u0130".encode(),
)
"""What readers of texts trip over."""

Change = Callable[[bytearray, Random, Sequence[bytes]], None]


def mutated(examples: Sequence[bytes], random: Random, pieces: Sequence[bytes]) -> bytes:
    """One of the examples, changed; pieces are put into it at times."""
    data = bytearray(random.choice(examples))
    if random.random() < 0.1:
        other = random.choice(examples)
        data[random.randint(0, len(data)) :] = other[random.randint(0, len(other)) :]
    for _ in range(random.randint(1, _CHANGES_MAX)):
        random.choice(_CHANGES)(data, random, pieces)
    return bytes(data[:INPUT_BYTES_MAX])


_VALUES: tuple[object, ...] = (
    None, True, False, 0, -1, 1.5, 1 << 70, float("nan"), float("inf"), "", "x", "\0", "\ud800",
    [], {}, [[]], [None], {"a": 1}, "9" * 5_000, [0] * 300,
)  # fmt: skip
_NAMES = ("x", "", "__class__", "name", "headers")


def changed_json(data: bytes, random: Random) -> bytes:
    """The document with another value, another name, or less, somewhere; itself if it is none."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return data
    root = [document]
    for _ in range(random.randint(1, 3)):
        _change_below(root, random)
    try:
        return json.dumps(root[0]).encode()
    except (ValueError, RecursionError):
        return data


def _change_below(node: Any, random: Random) -> None:  # noqa: ANN401 - a list or an object
    keys = list(range(len(node))) if isinstance(node, list) else list(node)
    if not keys:
        return
    key = random.choice(keys)
    inner = node[key]
    if isinstance(inner, (list, dict)) and inner and random.random() < 0.7:
        _change_below(inner, random)
    elif isinstance(node, dict) and random.random() < 0.3:
        moved = node.pop(key)
        if random.random() < 0.5:
            node[random.choice(_NAMES)] = moved
    else:
        node[key] = random.choice(_VALUES)


def _flip(data: bytearray, random: Random, _: Sequence[bytes]) -> None:
    if data:
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)


def _set(data: bytearray, random: Random, _: Sequence[bytes]) -> None:
    if data:
        data[random.randrange(len(data))] = random.randrange(256)


def _number(data: bytearray, random: Random, _: Sequence[bytes]) -> None:
    size = random.choice((1, 2, 4, 8))
    number = random.choice(_NUMBERS + _LARGE) & ((1 << 8 * size) - 1)
    at = random.randint(0, max(0, len(data) - size))
    data[at : at + size] = number.to_bytes(size, "little")


def _insert(data: bytearray, random: Random, _: Sequence[bytes]) -> None:
    at = random.randint(0, len(data))
    data[at:at] = random.randbytes(random.randint(1, 8))


def _put(data: bytearray, random: Random, pieces: Sequence[bytes]) -> None:
    piece = random.choice((*_PIECES, *pieces, *pieces))
    at = random.randint(0, len(data))
    data[at : at + (len(piece) if random.random() < 0.3 else 0)] = piece


def _remove(data: bytearray, random: Random, _: Sequence[bytes]) -> None:
    at, size = random.randint(0, len(data)), random.randint(1, _PIECE_BYTES_MAX)
    del data[at : at + size]


def _repeat(data: bytearray, random: Random, _: Sequence[bytes]) -> None:
    at, size = random.randint(0, len(data)), random.randint(1, _PIECE_BYTES_MAX)
    data[at:at] = data[at : at + size] * random.choice((1, 1, 2, 20))


def _cut(data: bytearray, random: Random, _: Sequence[bytes]) -> None:
    del data[random.randint(0, len(data)) :]


_CHANGES: tuple[Change, ...] = (
    _flip, _flip, _set, _number, _number, _insert, _put, _put, _put, _remove, _repeat, _cut,
)  # fmt: skip
