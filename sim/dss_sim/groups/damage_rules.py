"""What a group may pass though no user acknowledged it, and where it may stay for good.

    S14 damaged records are passed only by a group that goes on behind them, and only once operators
        can read of it; what the machine lost is passed by every group; what is neither, by none

A group may stay before records of which reads fail for good; one that was declared so, before those
that are damaged. It is to be done with everything below the first of them.
"""

from collections import defaultdict
from collections.abc import Iterator

from dss_core.progress import Progress, Range, normalised, without
from dss_sim.groups.history import Damaged, Lost, Passed, Unreadable
from dss_sim.groups.violation import Violation

STALL = "stall"


class DamageRules:
    """Takes what is told of records that cannot be read."""

    def __init__(self) -> None:
        self._damaged: defaultdict[str, list[Range]] = defaultdict(list)
        self._lost: defaultdict[str, list[Range]] = defaultdict(list)
        self._unreadable: defaultdict[str, list[Range]] = defaultdict(list)
        self._told: defaultdict[tuple[str, str], list[Range]] = defaultdict(list)
        """By group and stream."""

    def damaged(self, event: Damaged) -> None:
        """Records are confirmed damaged."""
        self._damaged[event.stream].append((event.start, event.end))

    def lost(self, event: Lost) -> None:
        """The machine lost records, or they were never given."""
        self._lost[event.stream].append((event.start, event.end))

    def unreadable(self, event: Unreadable) -> None:
        """Reads of records fail, and will."""
        self._unreadable[event.stream].append((event.start, event.end))

    def passed(self, event: Passed, on_damage: str) -> None:
        """Operators were told.

        Raises:
            Violation: of what is not damaged, or of a group that stays before it.
        """
        told = ((event.start, event.end),)
        if on_damage == STALL:
            raise Violation("S14", f"it was declared to stay before damage: {event}")
        if without(told, normalised(self._damaged[event.stream])):
            raise Violation("S14", f"not all of it is damaged: {event}")
        self._told[event.group, event.stream].extend(told)

    def check_covered(self, group: str, on_damage: str, stream: str, offset: int) -> None:
        """S14: progress covers an offset that holds nothing and that nobody acknowledged.

        Raises:
            Violation: it is damaged, and the group stays before that or nobody was told.
        """
        if _within(self._lost[stream], offset):
            return
        if on_damage == STALL:
            raise Violation("S14", f"{group} stays before damage, and passed {stream} @{offset}")
        if not _within(self._told[group, stream], offset):
            raise Violation("S14", f"nobody was told that {group} passed {stream} @{offset}")

    def stays_before(self, on_damage: str, stream: str, start: int, stored: Progress) -> int | None:
        """The first offset that a group need not get over, of those that it has not; None: none."""
        stops = normalised(self._stops(on_damage, stream))
        done = normalised(((0, start), (0, stored.floor), *stored.ranges))
        left = without(without(stops, normalised(self._lost[stream])), done) if stops else ()
        return left[0][0] if left else None

    def _stops(self, on_damage: str, stream: str) -> Iterator[Range]:
        yield from self._unreadable.get(stream, ())
        if on_damage == STALL:
            yield from self._damaged.get(stream, ())


def _within(ranges: list[Range], offset: int) -> bool:
    return any(start <= offset < end for start, end in ranges)
