"""Lets a plan say how many of the records that it reopens wait in a queue, or are dead letters.

Invariant: a plan reads a bounded part of the queues; if that is not all, it says "at least".
"""

from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from shlex import quote

from dss_core.counted import counted
from dss_core.lane import DEAD, RETRY
from dss_core.progress import Ranges, covers
from dssd.leaders.lag import StreamSurvey
from dssd.log.port import Log
from dssd.operations.kinds.queue_choice import ChoiceBudget
from dssd.operations.plans import subject_of
from dssd.queues.looking import EntryLook, Lane
from dssd.store.rows import GroupRow

ORIGINS_BYTES_MAX = 32 << 20
"""How much a plan reads of queues for this: some 80,000 entries, a quarter of a second."""


@dataclass(slots=True)
class QueuedOrigins:
    """How many of some records wait in queues."""

    retrying: int = 0
    dead: int = 0
    is_cut: bool = False

    def told(self, group: GroupRow) -> Iterator[str]:
        """The sentences about what becomes of them when the records are reopened."""
        name, least = quote(subject_of(group)), "at least " if self.is_cut else ""
        if self.retrying:
            waits = counted(self.retrying, "of them waits", "of them wait")
            come = "comes" if self.retrying == 1 else "come"
            yield (
                f"{least}{waits} in the retry queues, and {come} from there, once: "
                f"dssctl rq retry-now {name} brings them at once."
            )
        if self.dead:
            dead = counted(self.dead, "of them is", "of them are")
            come = "comes" if self.dead == 1 else "come"
            yield (
                f"{least}{dead} among the dead letters too, and {come} from the stream besides: "
                f"once they are done, discard the dead letters (dssctl dlq discard {name})."
            )


async def queued_origins(
    log: Log, reopened: Sequence[tuple[StreamSurvey, Ranges]]
) -> QueuedOrigins:
    """How many of the records of these streams wait in their queues.

    Raises:
        LogUnreadable, FrameCorrupt: a queue cannot be read.
    """
    found = QueuedOrigins()
    look = EntryLook(log, ChoiceBudget(ORIGINS_BYTES_MAX))
    for stream, ranges in reopened:
        for level in (RETRY, DEAD) if stream.view.queues and ranges else ():
            lane = Lane(stream.name.topic, level, stream.view.queues[level - 1])
            async with aclosing(look.entries(lane)) as pieces:
                async for _, entries in pieces:
                    count = sum(
                        each.stream == stream.name and covers(ranges, each.entry.origin_offset)
                        for each in entries
                    )
                    found.retrying += count if level == RETRY else 0
                    found.dead += count if level == DEAD else 0
    found.is_cut = look.budget.spent
    return found
