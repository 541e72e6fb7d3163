"""The packed columns of progress rows: sequences of little-endian u64.

Invariant: each `unpacked_` function gives back what its `packed_` function was given.
"""

import struct
from typing import TypedDict

from dss_core.limits import NAK_DELAY_MS_MAX
from dss_core.progress import Progress, Ranges
from dssd.machines.attempts import Attempts, Due, Rests
from dssd.machines.fate import Counts, Fate
from dssd.store.rows import ProgressRow

_U64_BYTES = 8


def packed_ranges(ranges: Ranges) -> bytes:
    """Pairs (start, end)."""
    return _packed([value for pair in ranges for value in pair])


def unpacked_ranges(packed: bytes) -> Ranges:
    """What `packed_ranges` wrote."""
    values = _unpacked(packed)
    return tuple(zip(values[::2], values[1::2], strict=True))


def packed_attempts(attempts: Attempts) -> bytes:
    """Triples (start, end, count)."""
    return _packed([value for run in attempts for value in run])


def unpacked_attempts(packed: bytes) -> Attempts:
    """What `packed_attempts` wrote."""
    values = _unpacked(packed)
    return tuple(zip(values[::3], values[1::3], values[2::3], strict=True))


def packed_rests(rests: Rests) -> bytes:
    """Triples (start, end, due); their delays are `packed_delays`."""
    return packed_attempts(tuple((start, end, due.at_ms) for start, end, due in rests))


def packed_delays(rests: Rests) -> bytes:
    """The delay of each entry of `packed_rests`."""
    return _packed([due.delay_ms for _, _, due in rests])


def unpacked_rests(packed: bytes, delays: bytes) -> Rests:
    """What `packed_rests` and `packed_delays` wrote; a row of an older format has no delays."""
    entries = unpacked_attempts(packed)
    known = _unpacked(delays) or (NAK_DELAY_MS_MAX,) * len(entries)
    return tuple(
        (start, end, Due(at_ms, delay_ms))
        for (start, end, at_ms), delay_ms in zip(entries, known, strict=True)
    )


def fate_of(row: ProgressRow) -> Fate:
    """The fate of records in a row."""
    return Fate(
        unpacked_attempts(row.failures),
        unpacked_attempts(row.doubts),
        unpacked_rests(row.rests, row.rest_delays),
        unpacked_ranges(row.damaged),
        Counts(
            row.acked_count,
            row.filtered_count,
            row.lost_count,
            row.damaged_count,
            row.moved_count,
            row.retried_count,
        ),
    )


class FateColumns(TypedDict):
    """The columns of a row that say what became of records."""

    failures: bytes
    doubts: bytes
    rests: bytes
    rest_delays: bytes
    damaged: bytes
    acked_count: int
    filtered_count: int
    lost_count: int
    damaged_count: int
    moved_count: int
    retried_count: int


def fate_columns(fate: Fate) -> FateColumns:
    """What `fate_of` reads."""
    counts = fate.counts
    return {
        "failures": packed_attempts(fate.failures),
        "doubts": packed_attempts(fate.doubts),
        "rests": packed_rests(fate.rests),
        "rest_delays": packed_delays(fate.rests),
        "damaged": packed_ranges(fate.damaged),
        "acked_count": counts.acked,
        "filtered_count": counts.filtered,
        "lost_count": counts.lost,
        "damaged_count": counts.damaged,
        "moved_count": counts.moved,
        "retried_count": counts.retried,
    }


def reached_by(row: ProgressRow) -> int:
    """The offset after the last record that was handed out or acknowledged in the group; for a
    queue also after the last known entry.
    """
    ranges = unpacked_ranges(row.ranges)
    return max(row.floor, row.frontier, row.applied_end, *(end for _, end in ranges))


def progress_of(row: ProgressRow | None) -> Progress:
    """The progress in a row; a stream without a row was created after the declaration."""
    return Progress(0) if row is None else Progress(row.floor, unpacked_ranges(row.ranges))


def _packed(values: list[int]) -> bytes:
    return struct.pack(f"<{len(values)}Q", *values)


def _unpacked(packed: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(packed) // _U64_BYTES}Q", packed)
