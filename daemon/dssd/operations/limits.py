"""Bounds of operations that several modules take, with units last and reasons."""

MOVES_A_PLAN_MAX = 2_000
"""Streams that one rebalance moves: its row holds them, some 200 bytes each. Who wants more plans
again when these are done."""

GROUPS_NAMED_MAX = 5
"""In the sentences of a plan, those that lose most; the rest is counted."""
