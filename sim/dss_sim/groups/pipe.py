"""The connection of a client: whole and in order in both directions, until it is cut.

Invariant: nothing arrives after the cut on a side that has noticed it; messages on their way are
lost. Each side notices by itself.
"""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Protocol

from dss_sim.groups.schedule import Host, Schedule
from dssd.sessions.client_items import Down, Up

LATENCY_US = (100, 1_500)


class ClientEnd(Protocol):
    """The client's end: takes items of the session."""

    def take(self, pipe: "Pipe", item: Down) -> None:
        """An item came."""

    def lost(self, pipe: "Pipe") -> None:
        """The connection is gone."""


class SessionEnd(Protocol):
    """The session's end: takes items of the client."""

    def take(self, item: Up) -> None:
        """An item came."""

    def lost(self) -> None:
        """The connection is gone."""


class Pipe:
    """One connection between a client and its session."""

    def __init__(
        self, schedule: Schedule, chance: Random, client: Host, daemon: Host, above: ClientEnd
    ) -> None:
        self.open = True
        self.below: SessionEnd | None = None
        self._schedule = schedule
        self._chance = chance
        self._client = client
        self._daemon = daemon
        self._above = above
        self._up_us = 0
        self._down_us = 0

    def up(self, item: Up) -> None:
        """Send to the session."""
        self._up_us = self._arrival_us(self._up_us)
        self._arrive(self._up_us, partial(self._take_up, item), self._daemon)

    def down(self, item: Down) -> None:
        """Send to the client."""
        self._down_us = self._arrival_us(self._down_us)
        self._arrive(self._down_us, partial(self._take_down, item), self._client)

    def cut(self, session_notices_us: int = 0, client_notices_us: int = 0) -> None:
        """The connection breaks; each side notices after so long."""
        if self.open:
            self.open = False
            now_us = self._schedule.now_us
            self._arrive(now_us + session_notices_us, self._lose_below, self._daemon)
            self._arrive(now_us + client_notices_us, self._lose_above, self._client)

    def _arrival_us(self, before_us: int) -> int:
        low, high = LATENCY_US
        at_us = self._schedule.now_us + low + int(self._chance.random() * (high - low))
        return max(before_us, at_us)

    def _arrive(self, at_us: int, act: Callable[[], None], host: Host) -> None:
        self._schedule.arrive(at_us - self._schedule.now_us, act, host)

    def _take_up(self, item: Up) -> None:
        if self.open and self.below is not None:
            self.below.take(item)

    def _take_down(self, item: Down) -> None:
        if self.open:
            self._above.take(self, item)

    def _lose_below(self) -> None:
        if self.below is not None:
            self.below.lost()

    def _lose_above(self) -> None:
        self._above.lost(self)
