"""Bounds that several modules of the command line take, with units last and reasons."""

from dss_core.limits import RECORD_BYTES_MAX

CALL_TIMEOUT_S = 10.0
"""A call that only asks or changes something; a person waits no longer without a word."""

OPERATION_WAIT_S = 300.0
"""For the end of an operation: members settle what they hold, a frozen one for its lease."""

OPERATIONS_LISTED = 50
"""By `ops ls`, unless more are asked for: two screens."""

OPERATION_NUMBER_MAX = (1 << 63) - 1
"""The highest that the daemon's store can hold; a longer one is a slip of the fingers."""

VERBS_NAMED_MAX = 16
"""Of a noun, where a verb is none of its: the longest has two lines of them."""

CONNECT_WAIT_S = 2.0
"""How long a daemon that is being started is waited for. DSSCTL_CONNECT_WAIT overrides it."""

INPUT_LINE_BYTES_MAX = 2 * RECORD_BYTES_MAX
"""A record in JSON, base64 included, and room for its field names."""

EVENTS_BEFORE_FOLLOWING = 10
"""Events that are printed before those that come, so that a person sees where they are."""

WATCH_INTERVAL_S = 2.0
"""Between two looks of a list that is watched: a person reads no faster."""

NEAR_NAMES_MAX = 3
"""That are suggested for one that is not there."""

CONFIG_BYTES_MAX = 1 << 20
"""A configuration file: a thousand contexts are less."""

GROUPS_OF_A_RECORD = 10
"""Groups that a record's page tells of; each is asked."""

PAGE_ROWS = 20
"""Of a list inside a page; with what stands around them, a screen."""

OUTPUT_SHOWN_MAX = 100
"""Characters of what a chunk left in its manifest, in a table: audits leave some thousands."""

PAGE_EVENTS = 5
PAGE_OPERATIONS = 3
"""The newest, on a page: what happened lately, not all that is kept."""

RECENT_ERROR_MS = 24 * 3_600_000
"""So long an event of severity error counts in a verdict, as in the daemon's own status."""

RUNS_DESCRIBED = 10
"""Runs that the description of a schedule shows; `schedules runs` has all that are kept."""
MOMENT_COLUMNS = 27
"""Reserved for a moment with a fraction of a second, 2026-11-20T08:00:00.123000Z."""

GROUPS_DESCRIBED_AT_ONCE = 16
"""By a list of all members: enough to hide the round trip, little of the daemon's calls."""

DOCTOR_EVENTS = 200
"""Warnings and errors that the doctor looks through, the newest."""

DOCTOR_EVENTS_SINCE = "-1d"
"""A day, as in the daemon's own status."""

CLOCK_SKEW_MS_MAX = 1_000
"""More makes times like -15m mean something else here than there."""

NEAR_BOUND_PART = 0.8
"""Of a bound of the daemon: time to look who holds it."""

OPEN_FILES_MIN = 4_096
"""With fewer, clients get fewer than half of the connections that the daemon would serve."""

DISK_FREE_PART_FEW = 0.1
DISK_FREE_PART_LEAST = 0.03
"""Of the disk: a tenth is the bound of the alert DssDiskFillsUp; below the other it is a matter of
minutes under load."""

STUCK_TOLD = 5
"""Groups and streams that the doctor names; groups stuck has all."""

SESSION_STALE_MS = 3_600_000
"""A client that restarts is back sooner."""

ENDED_BADLY_TOLD_MS = 24 * 3_600 * 1_000
"""For so long after a start the doctor warns of how the daemon before ended: no shift misses it."""

OPERATION_RUNS_MS = 10 * 60_000
"""Leases end in seconds, so an operation that runs for longer waits for something odd."""

BUNDLE_BYTES_MAX = 128 << 20
"""Of a support bundle before it is packed: it is mailed, packed ten times smaller."""

BUNDLE_ENTRY_BYTES_MAX = 32 << 20
"""Of one file in it, so that no long list leaves room for nothing else."""

BENCH_RECORDS = 100_000
"""Some seconds of work, enough for a rate that means something."""

BENCH_FRAME_RECORDS = 500
"""Handed over at once; half a usual frame of small records."""

BENCH_SINGLE_RECORDS = 500
BENCH_LATENCY_S = 5.0
"""Of records one by one, at most."""

SCHEDULE_LATE_MS = 10 * 60_000
"""A run that is due begins within its jitter, minutes at most."""

JOB_UNDRIVEN_MS = 5 * 60_000
"""A driver that is replaced is there again within its lease, seconds."""
