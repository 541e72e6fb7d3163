"""Every bound of the command line, with its unit last and its reason."""

from dss_core.limits import RECORD_BYTES_MAX

CALL_TIMEOUT_S = 10.0
"""A call that only asks or changes something; a person waits no longer without a word."""

SILENT_S = 3.0
"""After it a person is told that the daemon has not answered: most calls take milliseconds."""

OPERATION_WAIT_S = 300.0
"""For the end of an operation: members settle what they hold, a frozen one for its lease."""

OPERATIONS_LISTED = 50
"""By `ops ls`, unless more are asked for: two screens."""

OPERATION_NUMBER_MAX = (1 << 63) - 1
"""The highest that the daemon's store can hold; a longer one is a slip of the fingers."""

DOCUMENT_BYTES_MAX = 64 << 20
"""A plan, or exported offsets: of 65,536 streams with some 100 acknowledged ranges each, less."""

VERBS_NAMED_MAX = 16
"""Of a noun, where a verb is none of its: the longest has two lines of them."""

CONNECT_WAIT_S = 2.0
"""How long a daemon that is being started is waited for. DSSCTL_CONNECT_WAIT overrides it."""

CONNECT_PAUSE_S = 0.05
"""Between two attempts at it; the transport has pauses of its own."""

INPUT_LINE_BYTES_MAX = 2 * RECORD_BYTES_MAX
"""A record in JSON, base64 included, and room for its field names."""

INPUT_CHUNK_BYTES = 256 << 10
"""Read from the input at once: a few hundred lines, little to hold."""

EVENTS_BEFORE_FOLLOWING = 10
"""Events that are printed before those that come, so that a person sees where they are."""

PIPE_BYTES = 4096
"""Of a pipe that `consume --group` writes to: a page, so that room means that it is empty."""

PIPE_LOOK_MS = 1
"""How long the event loop stands still for a reader; one that waits takes some 20 us."""

PIPE_PAUSE_S = 0.001
"""Before a pipe is looked at again that could not be made small."""

TABLE_INDENT = 4
"""Before the rest of a row that a terminal's line does not hold."""

TABLE_TEXT_COLUMNS_MIN = 24
"""A text in the last column is broken between words there if so much room is left for it; four or
five words a line are still read as a text."""

WATCH_INTERVAL_S = 2.0
"""Between two looks of a list that is watched: a person reads no faster."""

WATCH_INTERVAL_S_MIN = 0.2
"""A list costs the daemon a look at every group."""

NEAR_NAMES_MAX = 3
"""That are suggested for one that is not there."""

CONFIG_BYTES_MAX = 1 << 20
"""A configuration file: a thousand contexts are less."""

JSON_DEPTH_MAX = 64
"""Nesting of a payload that is shown as JSON; what is deeper is shown as text."""

PAYLOAD_CELL_CHARS = 120
"""Of a payload in a table; two lines of a usual terminal."""

PATTERN_S_MAX = 2.0
"""For a pattern on one batch of records, which usually takes milliseconds: it backtracks."""

RECORDS_PEEKED = 10
"""Unless more are asked for: they fit on a screen."""

RECORDS_PEEKED_MAX = 10_000
"""They are in memory at once, to be put in order."""

RECORDS_FOUND = 100
"""Before a search ends, unless more are asked for."""

RECORDS_LOOKED_AT = 10_000_000
"""By a search, unless more are asked for: about a minute."""

GROUPS_OF_A_RECORD = 10
"""Groups that a record's page tells of; each is asked."""

PROGRESS_AFTER_S = 1.0
"""A bar that comes and goes sooner is noise."""
PROGRESS_LINE_S = 10.0
"""Between two lines of progress where there is no terminal: a log of an hour has 360 of them."""
NAMES_FRESH_S = 10.0
"""Completion asks the daemon again after it; between key strokes nothing changes."""

NAMES_OLD_S = 86_400.0
"""Names that are older are not answered: nobody knows what they stood for."""

NAMES_FIRST_WAIT_S = 0.4
"""Where no names are kept yet, the first key stroke waits so long: a list takes half of it."""

NAMES_FIRST_LOOK_S = 0.01
"""Between two looks whether they are there."""

NAMES_LIST_TIMEOUT_S = 2.0
"""Of the list that refreshes names; nobody waits for it."""

NAMES_KEPT_MAX = 2_000
"""Of a kind; nobody reads more."""

NAMES_KEPT_BYTES_MAX = 1 << 20
"""Read of a kind: so many of the longest names, with words about them."""

PAGE_ROWS = 20
"""Of a list inside a page; with what stands around them, a screen."""

DRIVER_LOOK_S = 0.1
"""How soon it is looked again whether a driver that was just started has taken its job."""

DRIVER_LOOKS_MAX = 80
"""A driver takes a second or two to start; who waits is then told that nobody drives the job."""

OUTPUT_SHOWN_MAX = 100
"""Characters of what a chunk left in its manifest, in a table: audits leave some thousands."""

BAR_PLACES = 10
"""Of the bar of a stream that has as many records as the mean."""

BAR_PLACES_MAX = 40
"""Of the longest bar: a stream with four times the mean, or all records of a topic."""

SKEW_NOTICED = 2.0
"""By how much a stream has more than the mean before a report says so."""

PAGE_EVENTS = 5
PAGE_OPERATIONS = 3
"""The newest, on a page: what happened lately, not all that is kept."""

DAEMON_LOOK_S = 0.2
"""Between two looks for a daemon that is not there yet: a start takes seconds."""

DAEMON_LOOK_TIMEOUT_S = 2.0
"""For one of them: a daemon that starts takes calls before it answers them."""
RUNS_DESCRIBED = 10
"""Runs that the description of a schedule shows; `schedules runs` has all that are kept."""
MOMENT_COLUMNS = 27
"""Reserved for a moment with a fraction of a second, 2026-11-20T08:00:00.123000Z."""

WATCH_SCREEN_MARGIN = 2
"""Lines of a terminal that a watched list leaves: its heading, and where the cursor is."""

GROUPS_DESCRIBED_AT_ONCE = 16
"""By a list of all members: enough to hide the round trip, little of the daemon's calls."""

CLOCK_SKEW_MS_MAX = 1_000
"""More makes times like -15m mean something else here than there."""

BUNDLE_BYTES_MAX = 128 << 20
"""Of a support bundle before it is packed: it is mailed, packed ten times smaller."""

BUNDLE_ENTRY_BYTES_MAX = 32 << 20
"""Of one file in it, so that no long list leaves room for nothing else."""

BUNDLE_FILES_MAX = 1_000
"""In one that is read: some twenty, and the logs that were named."""

LOG_CODES_TOLD = 5
"""Of those that a log names: the most frequent."""

BUNDLE_EVENTS = 2_000
BUNDLE_OPERATIONS = 500
"""The newest; what is older is hardly about what hurts now."""

LOG_LINES = 5_000
"""From the end of a log."""

LOG_READ_BYTES = 4 << 20
"""From the end of a file, to find so many lines in."""

LOG_S_MAX = 15.0
"""For the journal, which can be slow on a large one."""

BENCH_RECORDS = 100_000
"""Some seconds of work, enough for a rate that means something."""

BENCH_FRAME_RECORDS = 500
"""Handed over at once; half a usual frame of small records."""

BENCH_FRAMES_OUT = 4
"""Such hand-overs that wait for their answers at a time: what keeps a disk busy."""

BENCH_SINGLE_RECORDS = 500
BENCH_LATENCY_S = 5.0
"""Of records one by one, at most."""

BENCH_BYTES_MAX = 4 << 30
BENCH_DISK_PART = 0.1
"""What a bench may publish: no more than that, nor than this part of what is free."""

BENCH_KEPT_MS = 3_600_000
"""The retention of its topic, in case that nobody is left to remove it."""

BENCH_DRAIN_S = 30.0
"""For what was published to come back; longer means that delivery stands still."""

BENCH_CLEAN_UP_S = 15.0
"""For removing topic and group at the end; a daemon that is gone cannot."""

BENCH_SHOWN_EVERY_S = 0.2
"""Between two looks at how far it is."""

JOB_LOG_BYTES_MAX = 1 << 20
"""Of what the drivers of a job said. Where it is more when another one is started, it becomes the
older half; so there are two of these at most, and what one driver says: a line a chunk."""

JOB_LOG_LINE_BYTES_MAX = 64 << 10
"""Of a line that is printed."""

JOB_LOG_LOOK_S = 0.5
"""How soon `jobs logs -f` tells what a driver said."""

JOB_LOG_END_S = 3.0
"""How long the last events of a job that has ended are awaited: the daemon writes its events once a
second."""

STREAMS_AT_ONCE = 16
"""Streams of a topic that are looked at together; one after the other the way to the daemon and
back would count a thousand times."""

FAILURES_KEPT = 20
"""Files with tracebacks of errors that nobody expected; the oldest go first."""

OBJECTS_BEFORE_COLLECTION = 100_000
"""New objects before the collector of cycles looks. What a command loads stays until it ends, and
with Python's own figure it was looked through again and again meanwhile."""

RATES_AFTER_S = 6.0
"""How old a group is until its rates are shown: the daemon looks at it every 5 s, and before it has
looked, a rate of 0 would stand beside thousands of records."""

SUMMARY_CHARACTERS_MAX = 400
"""Of a verb in the help of its noun: any first sentence, over a few lines."""
