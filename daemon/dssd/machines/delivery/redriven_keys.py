"""What came to the dead letters of a key between a redrive's plan and the lane's next holder.

Where dead letters block, a redrive takes whole keys. Until its lane is lent anew, what is met of
these keys still goes to the dead letters, behind what was chosen: nothing is wrong with it, and it
would hold up its key once all before it is back. So it comes back with the others. Invariants: only
what never failed is taken along, and only while the redrive has something to bring back when the
lane is lent; what died before the plan and was not chosen stays.
"""

from collections.abc import Sequence
from dataclasses import replace

from dss_core.progress import covers, normalised
from dssd.machines.delivery.events import Entry
from dssd.machines.queues import QueueState


class RedrivenKeys:
    """Of one lane, while it is opened."""

    def __init__(self, dead: QueueState) -> None:
        is_active = dead.redrive.whole_keys and dead.redriving
        self._chosen = dead.redrive.ranges if is_active else ()
        self._keys: set[int] = set()

    def followed(self, dead: QueueState, entries: Sequence[Entry]) -> QueueState:
        """The dead letters with a redrive of these too, which the queue holds, in order."""
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
