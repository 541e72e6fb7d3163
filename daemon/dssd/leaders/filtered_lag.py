"""The lag of a group whose filter takes a part of a topic: counted in the log, if that is cheap.

The subject tables of frames tell what a filter rejects, so only the heads of frames without a match
are read. Invariant: a count is exact or there is none. One question may read a bounded number of
bytes, for all its groups together.
"""

from dataclasses import dataclass
from typing import NamedTuple

from dss_core.errors import LogUnreadable
from dss_core.filters import TopicFilter
from dss_core.ids import StreamId
from dss_core.progress import Ranges, clipped, complement, total
from dssd.limits import READ_CHUNK_BYTES_MAX
from dssd.log.port import Chunk, Log

LAG_COUNT_READS_MAX = 1_024
LAG_COUNT_BYTES_MAX = 16 << 20
"""How much a question for the lag of groups may read to count what their filters take: some 50 ms.
Beyond it the lag is an upper bound."""


@dataclass(slots=True)
class CountBudget:
    """How much one question may still read."""

    reads: int = LAG_COUNT_READS_MAX
    bytes: int = LAG_COUNT_BYTES_MAX

    def spend(self, chunk: Chunk) -> None:
        """Count one read."""
        self.reads -= 1
        self.bytes -= len(chunk.frames)

    @property
    def spent(self) -> bool:
        """Whether nothing more may be read."""
        return self.reads <= 0 or self.bytes <= 0


class Matching(NamedTuple):
    """The part of a stream's backlog that a filter takes."""

    records: int
    first: int | None
    """The first of them."""


async def matching_in(
    stream: StreamId, unacked: Ranges, wanted: TopicFilter, log: Log, budget: CountBudget
) -> Matching | None:
    """How many of these offsets the filter takes; None if that is unknown, or not cheap.

    Raises:
        StreamNotFound: its topic was removed.
    """
    records = 0
    first: int | None = None
    for low, high in unacked:
        at = low
        while at < high:
            if budget.spent:
                return None
            try:
                chunk = await log.read(stream, at, bytes_max=READ_CHUNK_BYTES_MAX, matching=wanted)
            except LogUnreadable:
                return None
            budget.spend(chunk)
            if chunk.damaged or chunk.next <= at:
                return None
            kept = clipped(complement(chunk.mask, chunk.base, chunk.base + chunk.records), at, high)
            records += total(kept)
            if kept and first is None:
                first = kept[0][0]
            at = chunk.next
    return Matching(records, first)
