"""When operators hand streams over and evict members: drawn apart, so that no other plan changes.

Invariant: hand-overs are orderly, so no record comes twice where a plan is strict; an eviction is
not, because its grace may be too short for some users.
"""

from random import Random

MEMBER_OPERATIONS = ("transfer", "revoke_grant", "unpin", "rebalance", "evict", "ask_again")
CANCEL = "cancel_asked"
HAND_OVERS = frozenset({"transfer", "revoke_grant", "unpin", "rebalance", "ask_again", CANCEL})
CANCELLED_SHARE = 0.4
CANCELLED_WITHIN_US = 30_000
"""The delay of a cancellation: short enough that something may not have begun."""
OPERATED_SHARE = 1 / 4
"""The share of runs with such operators."""
ASKED_MAX = 8
GRACE_MS_MAX = 5_000
"""The longest grace that an operator gives an evicted member."""


def operations(seed: int, begins_us: int, ends_us: int) -> list[tuple[int, str, int]]:
    """When which operation is asked for, and for whom; in most runs there is none."""
    chance = Random(f"{seed}/members operated")
    if chance.random() >= OPERATED_SHARE:
        return []
    times = chance.randint(1, ASKED_MAX)
    asked = [
        (
            chance.randrange(begins_us, ends_us),
            chance.choice(MEMBER_OPERATIONS),
            chance.randrange(1 << 16),
        )
        for _ in range(times)
    ]
    late = Random(f"{seed}/members cancelled")
    cancelled = [each for each in asked if late.random() < CANCELLED_SHARE]
    return asked + [
        (at_us + late.randrange(CANCELLED_WITHIN_US), CANCEL, who) for at_us, _, who in cancelled
    ]
