"""Bounds of operations that several modules take, with units last and reasons."""

MOVES_A_PLAN_MAX = 2_000
"""How many streams one rebalance moves: its row holds them, some 200 bytes each. For more, plan
again when these are done."""

GROUPS_NAMED_MAX = 5
"""How many groups the sentences of a plan name, those that lose most; the rest is counted."""
