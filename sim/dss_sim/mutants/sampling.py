"""A sample of the mutants, a different one at each turn.

Invariant: turns that follow each other go through all mutants before one is repeated, whatever the
size of a sample.
"""

from collections.abc import Sequence

from dss_sim.mutants.planting import Mutant


def sampled(groups: Sequence[Sequence[Mutant]], size: int, turn: int) -> list[Mutant]:
    """This many mutants, or all if there are fewer, from as many groups as possible."""
    order = _spread(groups)
    first = turn * size
    return [order[(first + at) % len(order)] for at in range(min(size, len(order)))]


def _spread(groups: Sequence[Sequence[Mutant]]) -> list[Mutant]:
    """All mutants, with those of each group spread evenly."""
    placed = [
        ((position + 0.5) / len(group), mutant)
        for group in groups
        for position, mutant in enumerate(group)
    ]
    return [mutant for _, mutant in sorted(placed, key=lambda each: each[0])]
