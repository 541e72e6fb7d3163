"""All randomness of a run, drawn from its seed.

Ordinary randomness (latencies, a user's next act) comes from one generator for each purpose. Faults
are asked for by kind: the n-th question of a kind strikes or not, and the strikes are the *fault
tape* of the run. A replay may keep a part of the tape: every other question then finds no fault.
The details of a kept strike stay the same, because they are drawn from its name.
"""

from collections import defaultdict
from collections.abc import Mapping
from random import Random

Strike = tuple[str, int]
"""The kind of a fault, and the number of its question, from 1."""


class Randomness:
    """Generators by purpose, and the fault tape."""

    def __init__(
        self, seed: int, rates: Mapping[str, float], kept: frozenset[Strike] | None = None
    ) -> None:
        self._seed = seed
        self._rates = dict(rates)
        self._kept = kept
        self._asked: defaultdict[str, int] = defaultdict(int)
        self._faults = self.of("faults")
        self.struck: list[Strike] = []

    def of(self, purpose: str) -> Random:
        """A generator that nothing else uses."""
        return Random(f"{self._seed}/{purpose}")

    def strike(self, kind: str) -> Random | None:
        """Whether a fault of this kind strikes now: a generator for its details, or None."""
        rate = self._rates.get(kind, 0.0)
        if not rate:
            return None
        self._asked[kind] += 1
        strike = (kind, self._asked[kind])
        drawn = self._faults.random() < rate
        if not (drawn if self._kept is None else strike in self._kept):
            return None
        self.struck.append(strike)
        return Random(f"{self._seed}/{kind}/{strike[1]}")

    def calm(self) -> None:
        """No fault strikes from now on."""
        self._rates.clear()
