"""Bounds that several modules of the command line take, with units last and reasons."""

CALL_TIMEOUT_S = 10.0
"""A call that only asks or changes something; a person waits no longer without a word."""

OPERATION_WAIT_S = 300.0
"""For the end of an operation: members settle what they hold, a frozen one for its lease."""

OPERATIONS_LISTED = 50
"""By `ops ls`, unless more are asked for: two screens."""

OPERATION_NUMBER_MAX = (1 << 63) - 1
"""The highest that the daemon's store can hold; a longer one is a slip of the fingers."""

CONNECT_WAIT_S = 2.0
"""How long a daemon that is being started is waited for. DSSCTL_CONNECT_WAIT overrides it."""

EVENTS_BEFORE_FOLLOWING = 10
"""Events that are printed before those that come, so that a person sees where they are."""

WATCH_INTERVAL_S = 2.0
"""Between two looks of a list that is watched: a person reads no faster."""

NEAR_NAMES_MAX = 3
"""That are suggested for one that is not there."""

CONFIG_BYTES_MAX = 1 << 20
"""A configuration file: a thousand contexts are less."""

PAGE_ROWS = 20
"""Of a list inside a page; with what stands around them, a screen."""

PAGE_EVENTS = 5
PAGE_OPERATIONS = 3
"""The newest, on a page: what happened lately, not all that is kept."""

RUNS_DESCRIBED = 10
"""Runs that the description of a schedule shows; `schedules runs` has all that are kept."""
MOMENT_COLUMNS = 27
"""Reserved for a moment with a fraction of a second, 2026-11-20T08:00:00.123000Z."""

BUNDLE_BYTES_MAX = 128 << 20
"""Of a support bundle before it is packed: it is mailed, packed ten times smaller."""

RECORDS_PEEKED_MAX = 10_000
"""They are in memory at once, to be put in order."""

BUNDLE_ENTRY_BYTES_MAX = 32 << 20
"""Of one file in it, so that no long list leaves room for nothing else."""

BENCH_SINGLE_RECORDS = 500
BENCH_LATENCY_S = 5.0
"""Of records one by one, at most."""
