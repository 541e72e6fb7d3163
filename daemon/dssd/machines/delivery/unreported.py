"""The unreported entries of a lane's queues: which of them still count, entry by entry.

An entry acknowledges its source (decision 53). So an entry beyond `applied_end` is alive if its
source was not acknowledged before, and its source is then done. Otherwise the record was
acknowledged while it was moved, or an operator gave it up: then the entry is done, and so are all
entries made of it. The holder of a lane does this when it opens the lane (`living`); `Unreported`
does it where nobody will hold the lane again. Invariant: entries are given in the order of levels,
and of offsets within a level. This module must not know what becomes of them.
"""

from collections.abc import Sequence

from dss_core.lane import DEAD, RETRY
from dss_core.progress import Progress, Ranges, normalised
from dssd.machines.delivery.events import Entry
from dssd.machines.queues import Queues


class Unreported:
    """The unreported entries of one lane."""

    def __init__(self, main: Progress, queues: Queues) -> None:
        self._progress = (main, *(queue.progress for queue in queues))
        self._applied = (0, *(queue.applied_end for queue in queues))
        self._more: tuple[set[int], set[int], set[int]] = (set(), set(), set())
        self.acked = [0, 0, 0]
        """By level: how many entries are done because their record was acknowledged before."""

    def take(self, level: int, entry: Entry) -> None:
        """Take an entry of a queue; one that was reported changes nothing."""
        # An entry from another lane has no source in this one.
        if entry.offset < self._applied[level] or entry.is_rehomed:
            return
        if self._is_done(level, entry.offset):
            return
        if self._is_done(entry.source_level, entry.source_offset):
            self._more[level].add(entry.offset)
            self.acked[level] += 1
        else:
            self._more[entry.source_level].add(entry.source_offset)

    def _is_done(self, level: int, offset: int) -> bool:
        return offset in self._more[level] or self._progress[level].is_acked(offset)

    def done(self, level: int) -> Ranges:
        """The entries of a queue that are done, by all that is known now."""
        assert level in (RETRY, DEAD)
        progress, more = self._progress[level], self._more[level]
        floor = ((0, progress.floor),) if progress.floor else ()
        return normalised((*floor, *progress.ranges, *((at, at + 1) for at in more)))


def living(level: int, entries: Sequence[Entry], progress: Sequence[Progress]) -> list[Entry]:
    """The entries of a queue whose source is not done, by the progress of each level."""
    live: list[Entry] = []
    done: set[int] = set()
    for each in entries:
        is_of_done = each.source_level == level and each.source_offset in done
        if is_of_done or progress[each.source_level].is_acked(each.source_offset):
            done.add(each.offset)
        else:
            live.append(each)
    return live
