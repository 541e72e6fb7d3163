"""Every bound of schedules and tasks, with its unit last and its reason."""

SCHEDULES_MAX = 100
"""Their rows, and the 50 latest runs of each with outputs: 25 MB of the store at most."""

RUNS_KEPT_MAX = 50
"""Of one schedule, those that ended: seven weeks of a nightly one."""

RUN_OUTPUT_BYTES_MAX = 4_096
"""What is kept of what a run said: its first lines and its last ones, as many as fit."""

RUN_OUTPUT_LINES_MAX = 200
"""Lines that a run holds while it goes on: some 20 KB."""

OUTPUT_LINE_BYTES_MAX = 400
"""A longer line is cut: one line must not take all of what is kept."""

SCHEDULE_LOOK_S = 5.0
"""The clock is looked at so often at least, so that one that was set is noticed. A run is due for a
minute before it counts as caught up."""

SCHEDULE_LOOK_S_MIN = 0.02
"""And no oftener, whatever is due."""

SCHEDULE_REST_MS = 60_000
"""A schedule about which nothing could be decided, by a mistake in the daemon, is looked at again
after this."""

SCHEDULE_RETRY_S = 5.0
"""When a decision is tried again that could not be stored. A full disk is not emptied sooner."""

DUE_LISTED_MAX = 64
"""Due times that are looked at one by one after a daemon that was down; of more, the latest ones
are, and the others are counted."""

DUE_TAKEN_OF_MANY = 3
"""The latest of those: one that is run, one whose delay is not over, the latest that was missed."""

FIRE_YEARS_MAX = 9
"""A cron expression that names no day for so long never fires: the longest wait is for the 29th of
February over the year 2100."""

SHIFT_MS_MAX = 3 * 3_600 * 1_000
"""Clocks that are moved for daylight saving are moved by less: times this near to a change of the
offset are looked at one by one."""

PREVIEWED_MAX = 100
"""Due times in one answer."""

JITTER_MS_MAX = 24 * 3_600 * 1_000
"""Work that is spread over more than a day has no schedule any more."""

JITTER_LOOKED_AT = 32
"""Due times whose distances bound the jitter: it must be shorter than the shortest of them."""

CATCH_UP_MS = 10 * 60 * 1_000
"""How late a run may begin where nothing is said: a restart, or an update of the machine."""

CATCH_UP_MS_MAX = 31 * 24 * 3_600 * 1_000
"""A run that is a month late is another run."""

RUN_TIMEOUT_MS = 3_600 * 1_000
"""Of one attempt, where nothing is said."""

RUN_TIMEOUT_MS_MIN = 1_000
"""A shorter one stops what has hardly begun."""

RUN_TIMEOUT_MS_MAX = 7 * 24 * 3_600 * 1_000
"""The scrub of a large log takes days; nothing takes a week."""

RETRIES_MAX = 10
"""With doubling pauses that is half a day; then a person should look."""

BACKOFF_MS = 60 * 1_000
"""Before the first retry, where nothing is said."""

BACKOFF_MS_MIN = 1_000
"""Sooner, what made the attempt fail is hardly over."""

TASK_ARGUMENTS_MAX = 16
"""More than any task takes."""

TASK_ARGUMENT_BYTES_MAX = 1_024
"""A URL, a path, a list of groups."""

CRON_BYTES_MAX = 200
"""Five fields with long lists of numbers."""

TIME_ZONE_BYTES_MAX = 64
"""The longest name of the tz database has 32."""

FAILURE_TOLD_EVERY_MS = 3_600 * 1_000
"""A schedule that fails each time is told as an event when it begins to fail, and then so often."""

TASK_STOP_S = 10.0
"""How long a task that was told to stop may take to clean up, before its run counts as ended."""

PLANNED_TIMES = 3
"""Due times that a plan names: enough to see what an expression means."""

TIMES_DESCRIBED = 5
"""Due times that the description of a schedule names."""

SCRUB_RATE = "16M"
"""What a scrub reads in a second where nothing is said: a tenth of a slow disk, 1.4 TB a day."""

DAMAGE_TOLD_MAX = 100
"""Damaged places that one scrub tells as events; the rest is in its output and counted."""

LAGGARDS_TOLD_MAX = 20
"""Groups that one lag check tells as events, those that are behind most; the rest is counted."""

ALERT_ATTEMPTS_MAX = 5
"""How often an alert is tried, where a lag check asks for most."""

ALERT_BACKOFF_S = 1.0
"""Before an alert is tried again; doubles."""

ALERT_TIMEOUT_S = 30.0
"""One attempt of an alert: a pager that needs longer is down."""

ALERT_OUTPUT_BYTES_MAX = 2_048
"""What is kept of what a hook says."""

ALERT_SAID_BYTES_MAX = 1 << 20
"""A hook that says more is ended: nobody reads it, and to take it takes the processor."""

PROGRAM_END_S = 2.0
"""How long a program that is ended is waited for. The kernel ends one that is ours at once; one
that became another user's cannot be ended, and must not hold up a stop."""

PROGRAM_PIECE_BYTES = 1 << 16
"""What is read at once of what a program says: all that a pipe holds."""

EXPORT_LINE_BYTES_MAX = 1 << 16
"""A line of the driver of an export is cut here: what it says of itself takes some hundred."""

EXPORT_SAID_BYTES_MAX = 4_096
"""What is kept of the errors that the driver of an export tells."""

SNAPSHOTS_KEPT = 5
"""Support snapshots in the data directory, where nothing is said."""

SNAPSHOTS_KEPT_MAX = 100
"""And at most: some 100 MB."""

SNAPSHOT_EVENTS_MAX = 500
"""The latest events that a snapshot has: two days of a daemon with trouble."""

SNAPSHOT_OPERATIONS_MAX = 200
"""The latest operations that it has, without their details."""

TRIGGER_REASON_BYTES_MAX = 800
"""Of an operator's reason for a run: beside the run and its due time it fits into that of an
operation."""
