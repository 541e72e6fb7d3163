"""Draws where frames are adopted: between acts, beside one, or killed in the middle.

Invariant: it draws from a generator of its own, so the acts of a seed are the same with and without
adoptions.
"""

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from dss_sim.log.acts import (
    ADOPTS_FROM,
    Act,
    Adopt,
    Arm,
    Kill,
    Numbered,
    Plan,
    ReadBack,
    Retain,
    Roll,
    Seal,
    Send,
    Sending,
    Together,
    Trim,
    drawn,
)
from dss_sim.log.faults import CALLS, COMMIT
from dss_sim.log.ledger import ANONYMOUS

ADOPTING = 0.4
"""The share of runs in which frames are adopted."""
OFTEN = (0.1, 0.3)
BESIDE = (Send, Roll, Retain, ReadBack, Seal, Trim)
"""Acts that may be under way during an adoption."""
KILLED_AFTER = 40
"""More calls than any adoption makes."""


class AdoptionDraws:
    """What a seed has drawn for its adoptions."""

    def __init__(self, seed: int) -> None:
        chance = self._chance = Random(f"{seed} adoptions")
        self._often = chance.choice(OFTEN) if chance.random() < ADOPTING else 0.0

    def beside(self, numbered: Numbered) -> Iterator[Numbered]:
        """The act, perhaps with an adoption beside or after it."""
        chance = self._chance
        if chance.random() >= self._often:
            yield numbered
            return
        adopt, number = self._adopt(), ADOPTS_FROM + numbered.number
        if isinstance(numbered.act, BESIDE) and chance.random() < 0.5:
            yield Numbered(numbered.number, Together((numbered.act, adopt)))
            return
        yield numbered
        yield from (Numbered(number, act) for act in self._behind(adopt))

    def _behind(self, adopt: Act) -> tuple[Act, ...]:
        if self._chance.random() < 0.7:
            return (adopt,)
        killing = Arm("kill", CALLS | {COMMIT}, self._chance.randrange(KILLED_AFTER), 1)
        return (killing, adopt, Kill())

    def _adopt(self) -> Adopt:
        chance = self._chance
        sendings = [self._sending() for _ in range(chance.choice((1, 2, 4, 9)))]
        return Adopt(chance.randrange(8), tuple(sendings))

    def _sending(self) -> Sending:
        records = self._chance.choice((1, 1, 3, 40))
        length = 5 if records == 40 else self._chance.choice((5, 60, 700))
        return Sending(0, self._chance.randrange(4), ANONYMOUS, records, length)


def planned(seed: int) -> Plan:
    """The plan of a seed."""
    plan, draws = drawn(seed), AdoptionDraws(seed)
    return replace(plan, acts=tuple(one for act in plan.acts for one in draws.beside(act)))
