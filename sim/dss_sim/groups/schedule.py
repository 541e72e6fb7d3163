"""The time of a run: what happens next, and on which host.

One heap orders all events by true time, in microseconds, then by when they were asked for. A host
has a monotonic clock of its own, which runs at its own rate from its own start; there is no wall
clock here. An event belongs to an incarnation of a host, or to no host: a crash voids the events of
the incarnation, a frozen host takes its events when it thaws, in order.

Invariant: nothing here reads a real clock or draws chance.
"""

import heapq
from collections.abc import Callable

Act = Callable[[], None]

PARTS = 1_000_000
"""Clock rates are in parts per million."""


ANY = -1
"""Stands for every incarnation of a host."""


class Crashed(Exception):
    """The host dies in the middle of an act."""


class Host:
    """A process: its clock, whether it is frozen, and how often it was started."""

    __slots__ = ("_offset_ms", "_rate", "_schedule", "frozen_until_us", "incarnation", "name")

    def __init__(self, schedule: "Schedule", name: str, *, rate: int, offset_ms: int) -> None:
        self._schedule = schedule
        self._rate = rate
        self._offset_ms = offset_ms
        self.name = name
        self.incarnation = 0
        self.frozen_until_us = 0

    def now_ms(self) -> int:
        """The host's monotonic clock."""
        return self._offset_ms + self._schedule.now_us * self._rate // (1_000 * PARTS)

    def elapsed_ms(self, span_us: int) -> int:
        """What the host's clock counts in a span of true time."""
        return span_us * self._rate // (1_000 * PARTS)

    def until_us(self, at_ms: int) -> int:
        """True time from now until the host's clock shows ``at_ms``."""
        due_us = -((self._offset_ms - at_ms) * 1_000 * PARTS // self._rate)
        return max(due_us - self._schedule.now_us, 0)

    def since_us(self, at_ms: int) -> int:
        """True time since the host's clock showed ``at_ms``, to a millisecond of its clock."""
        then_us = (at_ms - self._offset_ms) * 1_000 * PARTS // self._rate
        return max(self._schedule.now_us - then_us, 0)

    def crash(self) -> None:
        """Void all events of this incarnation."""
        self.incarnation += 1
        self.frozen_until_us = 0

    def freeze(self, duration_us: int) -> None:
        """Freeze it; later events wait."""
        self.frozen_until_us = max(self.frozen_until_us, self._schedule.now_us + duration_us)


class Schedule:
    """The events of a run."""

    def __init__(self) -> None:
        self.now_us = 0
        self.happened = 0
        """How many events have happened."""
        self._heap: list[tuple[int, int, Host | None, int, Act]] = []
        self._asked = 0

    def after(self, delay_us: int, act: Act, host: Host | None = None) -> None:
        """Let an event happen later, on the present incarnation of the host if one is named."""
        self._asked += 1
        incarnation = ANY if host is None else host.incarnation
        entry = (self.now_us + delay_us, self._asked, host, incarnation, act)
        heapq.heappush(self._heap, entry)

    def arrive(self, delay_us: int, act: Act, host: Host) -> None:
        """Let an event happen on the incarnation of the host that runs then."""
        self._asked += 1
        heapq.heappush(self._heap, (self.now_us + delay_us, self._asked, host, ANY, act))

    def step(self) -> Host | None:
        """Let the next event happen; returns the host that it happened on, if any.

        Raises:
            Crashed: the host died of it.
            IndexError: nothing is left to happen.
        """
        while True:
            at_us, asked, host, incarnation, act = heapq.heappop(self._heap)
            if host is not None:
                if incarnation not in (ANY, host.incarnation):
                    continue
                if host.frozen_until_us > at_us:
                    # It waits in the mailbox of the frozen process, and dies with it.
                    entry = (host.frozen_until_us, asked, host, host.incarnation, act)
                    heapq.heappush(self._heap, entry)
                    continue
            self.now_us = at_us
            self.happened += 1
            act()
            return host
