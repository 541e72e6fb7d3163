"""Reads the log for a question: one record, or the records of a key.

Invariant: a search is bounded in bytes by the budget of its question, and blocks the event loop no
longer than a read: frames without the bytes of the key are skipped undecoded, and records are
decoded in a thread. Nothing here knows groups.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from dss_core.decode import DecodedBatch, decode
from dss_core.frame import spans_of
from dss_core.ids import StreamId
from dss_core.progress import Ranges, covers
from dssd.log.port import Log
from dssd.look_thread import looked
from dssd.questions.answers import FoundRecord

LOOK_CHUNK_BYTES_MAX = 1 << 20
"""How much one read of a search for a key takes, as a delivery reads."""

LOOK_BYTES_MAX = 32 << 20
"""How much one search for a key reads, of all streams: some ten milliseconds where it comes from
memory. The caller continues behind it."""


class Gap(NamedTuple):
    """There is no record to read at an offset."""

    damaged: bool
    """False: lost to retention or a loss of power."""


@dataclass(slots=True)
class Budget:
    """The bytes that a question may still read."""

    bytes: int = LOOK_BYTES_MAX

    @property
    def spent(self) -> bool:
        """Whether nothing more may be read."""
        return self.bytes <= 0


class KeyFound(NamedTuple):
    """A record of the key."""

    offset: int
    record: FoundRecord


async def record_at(log: Log, stream: StreamId, offset: int) -> FoundRecord | Gap:
    """The record at an offset below the end.

    Raises:
        LogUnreadable: the read failed.
        StreamNotFound: its topic was removed.
    """
    chunk = await log.read(stream, offset, bytes_max=1)
    if not chunk.base <= offset < chunk.base + chunk.records:
        return Gap(damaged=covers(chunk.damaged, offset))
    batch = decode(chunk.frames, chunk.mask)
    return FoundRecord(batch.subjects[0], batch.keys[0], batch.append_times_us[0])


async def records_of_key(
    log: Log, stream: StreamId, key: bytes, start: int, end: int, budget: Budget
) -> AsyncIterator[tuple[int, list[KeyFound]]]:
    """The records of the key from ``start`` to ``end``, and where the search stopped.

    It ends early where the budget is spent.

    Raises:
        LogUnreadable: a read failed.
        StreamNotFound: its topic was removed.
    """
    at = start
    while at < end and not budget.spent:
        chunk = await log.read(stream, at, bytes_max=LOOK_CHUNK_BYTES_MAX)
        if chunk.next <= at:
            break
        # Charge each read, even one that only finds a missing file.
        budget.bytes -= max(len(chunk.frames), 1)
        found: list[KeyFound] = []
        if key in chunk.frames:
            found = await looked(_of_key, chunk.frames, chunk.mask, key)
        at = chunk.next
        yield min(at, end), [each for each in found if each.offset < end]


def _of_key(frames: bytes, mask: Ranges, key: bytes) -> list[KeyFound]:
    found: list[KeyFound] = []
    starts, _ = spans_of(frames)
    for start, end in pairwise(starts):
        # Keys lie in frames as they are: a frame without these bytes has no record of the key.
        if frames.find(key, start, end) >= 0:
            found += _in_frame(decode(frames[start:end], mask, checksums=False), key)
    return found


def _in_frame(batch: DecodedBatch, key: bytes) -> list[KeyFound]:
    offsets, subjects, times = batch.offsets, batch.subjects, batch.append_times_us
    return [
        KeyFound(offsets[at], FoundRecord(subjects[at], key, times[at]))
        for at, own in enumerate(batch.keys)
        if own == key
    ]
