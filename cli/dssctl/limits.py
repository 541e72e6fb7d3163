"""Bounds that several modules of the command line take, with units last and reasons."""

CALL_TIMEOUT_S = 10.0
"""The timeout of a call that only asks or changes something: no longer than a person waits."""

OPERATION_WAIT_S = 300.0
"""The timeout for the end of an operation: members settle their records, and the lease of a frozen
one must end."""

OPERATIONS_LISTED = 50
"""How many `ops ls` shows, unless more are asked for: two screens."""

OPERATION_NUMBER_MAX = (1 << 63) - 1
"""The highest number that the daemon's store can hold; a higher one is a typing error."""

CONNECT_WAIT_S = 2.0
"""How long a daemon that is being started is waited for. DSSCTL_CONNECT_WAIT overrides it."""

EVENTS_BEFORE_FOLLOWING = 10
"""How many kept events are printed before new ones, so that a person sees the context."""

WATCH_INTERVAL_S = 2.0
"""The pause between two looks at a watched list: a person reads no faster."""

NEAR_NAMES_MAX = 3
"""How many names are suggested for one that does not exist."""

CONFIG_BYTES_MAX = 1 << 20
"""The largest configuration file: a thousand contexts are smaller."""

PAGE_ROWS = 20
"""How many items a list inside a page has: with its surroundings, a screen."""

PAGE_EVENTS = 5
PAGE_OPERATIONS = 3
"""How many of the newest ones a page has: what happened lately, not all that is kept."""

RUNS_DESCRIBED = 10
"""Runs that the description of a schedule shows; `schedules runs` has all that are kept."""
MOMENT_COLUMNS = 27
"""The width of a moment with a fraction of a second, 2026-11-20T08:00:00.123000Z."""

BUNDLE_BYTES_MAX = 128 << 20
"""The size of a support bundle before it is packed: it is mailed, packed ten times smaller."""

RECORDS_PEEKED_MAX = 10_000
"""How many records may be sorted: they are in memory at once."""

BUNDLE_ENTRY_BYTES_MAX = 32 << 20
"""The size of one file in it, so that no long list leaves no room for others."""

BENCH_SINGLE_RECORDS = 500
BENCH_LATENCY_S = 5.0
"""How many single records are looked at, at most."""
