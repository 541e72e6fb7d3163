"""How messages of the group protocol travel: lost, doubled, late, out of order, or not at all.

Each direction between two hosts is a link of its own, so a partition may be one-sided. A message is
an event on the receiving host. A crashed host never gets it; a restarted one does, like a datagram,
which goes to the process that listens now.
"""

from dss_sim.groups.randomness import Randomness
from dss_sim.groups.schedule import Act, Host, Schedule

LATENCY_US = (200, 3_000)
LATE_US = (5_000, 1_500_000)
"""How late a late message is: it arrives after messages that were sent long after it."""


class Network:
    """The links between hosts."""

    def __init__(self, schedule: Schedule, chance: Randomness) -> None:
        self._schedule = schedule
        self._chance = chance
        self._latency = chance.of("latency")
        self._blocked_until_us: dict[tuple[str, str], int] = {}
        self.sent = 0
        """How many messages hosts sent, delivered or not."""

    def send(self, source: Host, target: Host, receive: Act) -> None:
        """Let ``receive`` happen on the target, once, twice or never."""
        self.sent += 1
        blocked_us = self._blocked_until_us.get((source.name, target.name), 0)
        if blocked_us > self._schedule.now_us or self._chance.strike("lose") is not None:
            return
        self._deliver(target, receive)
        if self._chance.strike("double") is not None:
            self._deliver(target, receive)

    def block(self, source: Host, target: Host, duration_us: int) -> None:
        """Let nothing through in this direction."""
        self._blocked_until_us[source.name, target.name] = self._schedule.now_us + duration_us

    def heal(self) -> None:
        """Let everything through again."""
        self._blocked_until_us.clear()

    def _deliver(self, target: Host, receive: Act) -> None:
        low, high = LATENCY_US
        delay_us = low + int(self._latency.random() * (high - low))
        late = self._chance.strike("late")
        if late is not None:
            delay_us += late.randint(*LATE_US)
        self._schedule.arrive(delay_us, receive, target)
