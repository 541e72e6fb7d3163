"""Bounds of operations that several modules take, with units last and reasons."""

DETAIL_LISTED_BYTES_MAX = 2_000
"""Of a change, and of what was before and after it, in a listing: so a page of 500 stays below the
4 MB of a message."""

STREAMS_MOVED_MAX = 10_000
"""Cursors that one operation moves: a leader begins them in one step, which took 55 us each, and a
plan of them fits into a message."""

MOVES_A_PLAN_MAX = 2_000
"""Streams that one rebalance moves: its row holds them, some 200 bytes each. Who wants more plans
again when these are done."""

RECORDS_SKIPPED_MAX = 1_000
"""By hand, in one operation; who passes over more says to which offset."""

GROUPS_NAMED_MAX = 5
"""In the sentences of a plan, those that lose most; the rest is counted."""

STREAMS_NAMED_MAX = 5
"""In a sentence of a plan; the rest is counted."""
