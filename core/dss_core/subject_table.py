"""The subject table of a frame: each distinct subject once, as u16 length and UTF-8.

Records name their subject by its index in the table. Invariant: equal bytes mean the same
subjects in the same order, so verdicts about a table may be kept by its bytes. Producers repeat
their few subjects: small tables are decoded and checked once. This module knows nothing of the
rest of a frame.
"""

import mmap
from functools import lru_cache
from struct import Struct

from dss_core.errors import FrameCorrupt, IllegalSubject
from dss_core.filters import check_subject, check_subjects

CACHED_TABLE_BYTES_MAX = 4_096
CACHED_TABLES_MAX = 1_024
"""Subject tables that a process keeps decoded: together at most 4 MiB, and their subjects."""


Buffer = bytes | bytearray | memoryview | mmap.mmap

_LENGTH = Struct("<H")
_BROKEN = "its subject table is broken"


@lru_cache(CACHED_TABLES_MAX)
def encoded_subject(subject: str) -> bytes:
    """A subject as it stands in a table.

    Raises:
        IllegalSubject: it breaks a rule.
    """
    check_subject(subject)
    raw = subject.encode()
    return _LENGTH.pack(len(raw)) + raw


def entries_end(buffer: Buffer, at: int, count: int) -> int | None:
    """Where that many entries from a position on end; None if the buffer ends before."""
    try:
        for _ in range(count):
            at += _LENGTH.size + buffer[at] + (buffer[at + 1] << 8)
    except IndexError:
        return None
    return at if at <= len(buffer) else None


def subjects_of(table: bytes, count: int) -> tuple[str, ...]:
    """The subjects in a table, in order.

    Raises:
        FrameCorrupt: the table has not exactly that many entries, or one is not UTF-8.
    """
    small = len(table) <= CACHED_TABLE_BYTES_MAX
    return (_decoded_once if small else _decoded)(table, count)


def verified_subjects(table: bytes, count: int) -> tuple[str, ...]:
    """The subjects in a table that a producer sent, in order.

    Raises:
        FrameCorrupt: the table has not exactly that many entries, each a legal subject.
    """
    small = len(table) <= CACHED_TABLE_BYTES_MAX
    return (_verified_once if small else _verified)(table, count)


def _decoded(table: bytes, count: int) -> tuple[str, ...]:
    subjects: list[str] = []
    at = 0
    try:
        for _ in range(count):
            start = at + _LENGTH.size
            at = start + table[at] + (table[at + 1] << 8)
            subjects.append(table[start:at].decode())
    except (IndexError, UnicodeDecodeError):
        raise FrameCorrupt(reason=_BROKEN) from None
    if at != len(table):
        raise FrameCorrupt(reason=_BROKEN)
    return tuple(subjects)


def _verified(table: bytes, count: int) -> tuple[str, ...]:
    subjects = subjects_of(table, count)
    try:
        check_subjects(subjects)
    except IllegalSubject as illegal:
        raise FrameCorrupt(reason=f"a subject is not allowed: {illegal.fields['rule']}") from None
    return subjects


_decoded_once = lru_cache(CACHED_TABLES_MAX)(_decoded)
_verified_once = lru_cache(CACHED_TABLES_MAX)(_verified)
