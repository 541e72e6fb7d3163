"""The one rule for every shared limit: no peer holds more than is left free.

So a lone peer may take half, the next one half of the rest, and a new peer always finds room. The
rule needs no guess of the number of peers. Invariant: a peer that holds no more than `least` never
has to give anything back.
"""

from collections.abc import Collection


def may_take_more(holds: int, taken: int, most: int, least: int) -> bool:
    """Whether a peer may take one more, given what it holds and what all peers hold."""
    return taken < most and holds < max(least, most - taken)


def fair_level(holdings: Collection[int], most: int, least: int) -> int:
    """The most that each peer may hold, so that as much is free once all are cut to it."""
    low, high = least, max(least, most)
    while low < high:
        middle = (low + high + 1) // 2
        if sum(min(each, middle) for each in holdings) + middle <= most:
            low = middle
        else:
            high = middle - 1
    return low
