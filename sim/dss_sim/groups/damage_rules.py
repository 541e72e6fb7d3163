"""Which offsets a group may pass without an ack, and where it may stall for good.

    S14 damaged records are passed only by a group that goes on after damage, and only once
        operators can read of it; records lost with the machine are passed by every group; others
        by none

A group may stall at records whose reads fail for good; a group that was declared so, also at
damaged ones. It must be done with everything below the first of them.
"""

from collections import defaultdict
from collections.abc import Iterator

from dss_core.progress import Progress, Range, normalised, without
from dss_sim.groups.history import Damaged, Lost, Passed, Unreadable
from dss_sim.groups.violation import Violation

STALL = "stall"


class DamageRules:
    """Takes the reports of records that cannot be read."""

    def __init__(self) -> None:
        self._damaged: defaultdict[str, list[Range]] = defaultdict(list)
        self._lost: defaultdict[str, list[Range]] = defaultdict(list)
        self._unreadable: defaultdict[str, list[Range]] = defaultdict(list)
        self._told: defaultdict[tuple[str, str], list[Range]] = defaultdict(list)
        """The passed damage, by group and stream."""

    def damaged(self, event: Damaged) -> None:
        """Records are confirmed damaged."""
        self._damaged[event.stream].append((event.start, event.end))

    def lost(self, event: Lost) -> None:
        """The machine lost records, or the offsets were never assigned."""
        self._lost[event.stream].append((event.start, event.end))

    def unreadable(self, event: Unreadable) -> None:
        """Reads of records fail, and will go on failing."""
        self._unreadable[event.stream].append((event.start, event.end))

    def passed(self, event: Passed, on_damage: str) -> None:
        """Operators were told of damage.

        Raises:
            Violation: it is no damage, or the group stalls at it.
        """
        told = ((event.start, event.end),)
        if on_damage == STALL:
            raise Violation("S14", f"it was declared to stay before damage: {event}")
        if without(told, normalised(self._damaged[event.stream])):
            raise Violation("S14", f"not all of it is damaged: {event}")
        self._told[event.group, event.stream].extend(told)

    def check_covered(self, group: str, on_damage: str, stream: str, offset: int) -> None:
        """S14: progress covers an offset without a record that nobody acknowledged.

        Raises:
            Violation: it is damaged, and the group stalls there or nobody was told.
        """
        if _within(self._lost[stream], offset):
            return
        if on_damage == STALL:
            raise Violation("S14", f"{group} stays before damage, and passed {stream} @{offset}")
        if not _within(self._told[group, stream], offset):
            raise Violation("S14", f"nobody was told that {group} passed {stream} @{offset}")

    def stays_before(self, on_damage: str, stream: str, start: int, stored: Progress) -> int | None:
        """The first missing offset at which the group may stall; None: there is none."""
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
