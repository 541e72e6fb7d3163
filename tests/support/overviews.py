"""A group as lists show it, without lag."""

from dataclasses import replace

from dssd.machines.fate import Counts
from dssd.questions.overviews import Overview
from dssd.questions.rates import NO_RATES
from dssd.store.rows import GroupRow

NOW_US = 1_800_000_000_000_000
GROUP = GroupRow(
    group_id=1,
    name="billing",
    filter="orders/#",
    kind="shared",
    start="now",
    session_id=None,
    ack_wait_ms=30_000,
    created_at_ms=0,
    cursor_generation=0,
)
DONE = replace(
    Overview(GROUP, "active", "", 1, 2, 0, 4, 0, True, None, Counts(), NO_RATES, NO_RATES, None),
    seen_us=NOW_US,
)
