"""Extends a redrive to followers that became dead letters after it was planned.

Where dead letters block, a redrive takes whole keys. Until its lane is lent anew, followers of
these keys still go to the dead letters, behind the chosen ones. They never failed, and would hold
up their key once the chosen ones are back. So the redrive takes them too. Invariants: only entries
that never failed are added, and only if the redrive still has dead letters left when the lane is
lent; entries that died before the plan and were not chosen stay.
"""

from collections.abc import Sequence
from dataclasses import replace

from dss_core.progress import covers, normalised
from dssd.machines.delivery.events import Entry
from dssd.machines.queues import QueueState


class RedrivenKeys:
    """The keys of one lane's redrive, while the lane is opened."""

    def __init__(self, dead: QueueState) -> None:
        is_active = dead.redrive.whole_keys and dead.redriving
        self._chosen = dead.redrive.ranges if is_active else ()
        self._keys: set[int] = set()

    def followed(self, dead: QueueState, entries: Sequence[Entry]) -> QueueState:
        """The state of the dead letters, with a redrive that includes followers among the entries.

        Entries come in the order of their offsets.
        """
        if not self._chosen:
            return dead
        end = self._chosen[-1][1]
        self._keys |= {each.key for each in entries if covers(self._chosen, each.offset)} - {0}
        more = [
            (each.offset, each.offset + 1)
            for each in entries
            if each.offset >= end and not each.attempt and each.key in self._keys
        ]
        if not more:
            return dead
        ranges = normalised((*dead.redrive.ranges, *more))
        return replace(dead, redrive=dead.redrive._replace(ranges=ranges))
