"""The wall clock of a run, and how a seed moves it: hours and days pass, and it jumps, also back.

Invariant: it draws from a generator of its own, so the acts of a seed are the same without it. Time
passes only by what is drawn here, and by a millisecond at each reading. It must not know acts or
readers.
"""

from dataclasses import dataclass
from math import exp, log
from random import Random

from dss_sim.log.ledger import FORGOTTEN_AFTER_US

TICK_US = 1_000
SECOND_US = 1_000_000
HOUR_US = 3_600 * SECOND_US
DAY_US = 24 * HOUR_US

BEGINS_US = (1_000 * SECOND_US, 0, 1_700_000_000 * SECOND_US, 4_000_000_000 * SECOND_US)
"""The times at which clocks begin: 0 for one without a battery, and for some the year 2096."""
OFTEN = (0.0, 0.0, 0.05, 0.2, 0.5)
"""How likely the clock jumps after an act."""
BACK = (0.0, 0.3, 0.7)
"""The shares of jumps that go back."""
LONGEST_US = (HOUR_US, 20 * HOUR_US, 400 * DAY_US)
NEAR_US = HOUR_US // 2
"""How close some jumps come to the time after which producers are forgotten."""
AGES_MS = (0, 50, 10 * 60_000, HOUR_US // 1_000, DAY_US // 1_000)


@dataclass(slots=True)
class Clock:
    """The wall clock of a run; each reading takes a millisecond."""

    now_us: int = BEGINS_US[0]

    def __call__(self) -> int:
        """Microseconds."""
        self.now_us += TICK_US
        return self.now_us

    def jump(self, by_us: int) -> None:
        """Move it forward or back, but not below zero."""
        self.now_us = max(0, self.now_us + by_us)


class ClockDraws:
    """What a seed has drawn for its clock."""

    def __init__(self, seed: int | str) -> None:
        chance = self._chance = Random(f"{seed} clock")
        self.begins_us = chance.choice(BEGINS_US)
        self._often = chance.choice(OFTEN)
        self._back = chance.choice(BACK)
        self._longest_us = chance.choice(LONGEST_US)

    def jump_us(self) -> int | None:
        """How far the clock jumps; None if it does not."""
        chance = self._chance
        if chance.random() >= self._often:
            return None
        by_us = round(SECOND_US * exp(chance.random() * log(self._longest_us / SECOND_US)))
        if self._longest_us > FORGOTTEN_AFTER_US and chance.random() < 0.4:
            by_us = FORGOTTEN_AFTER_US + chance.choice((-NEAR_US, NEAR_US))
        return -by_us if chance.random() < self._back else by_us

    def age_ms(self, drawn_ms: int) -> int:
        """The age limit of retention in runs in which hours pass."""
        return self._chance.choice(AGES_MS) if self._often else drawn_ms
