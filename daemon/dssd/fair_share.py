"""The one rule of all that peers share: nobody holds more than is left free.

One peer alone may so take half, the next one half of the rest, and there is always room for who
comes new. No figure has to be chosen for how many peers there will be. Invariant: who holds no more
than `least` is never asked to give anything back.
"""

from collections.abc import Collection


def may_take_more(holds: int, taken: int, most: int, least: int) -> bool:
    """Whether who holds so much of what is taken may have one more."""
    return taken < most and holds < max(least, most - taken)


def fair_level(holdings: Collection[int], most: int, least: int) -> int:
    """The most that each may hold, so that as much is free once the others gave back."""
    low, high = least, max(least, most)
    while low < high:
        middle = (low + high + 1) // 2
        if sum(min(each, middle) for each in holdings) + middle <= most:
            low = middle
        else:
            high = middle - 1
    return low
