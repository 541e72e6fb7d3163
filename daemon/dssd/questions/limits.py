"""Bounds of questions, with units last and reasons."""

LOOK_CHUNK_BYTES_MAX = 1 << 20
"""One read of a look for a key, as a delivery reads."""

LOOK_BYTES_MAX = 32 << 20
"""What one look for a key reads, of all streams: some ten milliseconds where it comes from memory.
A caller asks on behind it."""

LOOK_BACK_RECORDS_MAX = 65_536
"""How far below the floor the newest done record of a key is looked for, where none is open: older
ones interest nobody who waits for one."""

KEY_RECORDS_MAX = 10
"""Open records of a key in one answer, the oldest: they come one after the other."""

KEY_STREAMS_MAX = 64
"""Streams in one look for a key: one for each storage topic that may hold it."""

SAMPLE_EVERY_S = 5.0
"""How often ends and progress are sampled: 32,000 streams of groups cost some ten milliseconds each
time, in short turns."""

RATE_SPANS_MS = (60_000, 300_000)
"""Over which rates are averaged: a minute and five."""

END_SAMPLES_MAX = 64
"""Kept of each stream that grows, denser for the last minutes: one kilobyte."""

STUCK_AFTER_MS = 60_000
"""A stream with unread records that has had no acknowledgement for so long does not move: longer
than a usual ack wait, so that a record which comes again does not count."""

STUCK_HANDING_OVER_MS = 10_000
"""A stream that is lent or given back for longer than a lease waits for a holder that is frozen."""

STUCK_FAILURES = 5
"""A record that failed so often is named, though others of its stream go on around it."""

SCAN_CHUNK_BYTES_MAX = 1 << 18
"""One read of a scan, so that it holds the disk and the loop only shortly."""

SCAN_BYTES_A_SECOND = 64 << 20
"""A scan reads no faster, and works no more than half of the time: producers and consumers come
first, and a gigabyte takes some twenty seconds."""

SCANS_MAX = 1
"""At a time: a second one would double what the first may disturb."""

SCAN_TOLD_EVERY_S = 0.25
"""How often a scan tells how far it is: fast enough for a person."""

OLDEST_LOOKUPS_MAX = 256
"""Times of records at a floor that one list, or one look of the sampler, reads from the log where
samples do not reach: some milliseconds. What is left shows the time of the floor before, which is
no later, or none."""

WATCH_EVERY_S = 0.25
"""A watched item is told at most four times a second: as often as people see a difference."""

WATCH_REST_OF_LOOK = 50
"""After a look for watchers there is a rest so many times as long as it took of the processor: all
looks together cost two hundredths of one."""

WATCH_REST_S_MAX = 2.0
"""The longest such rest: of thousands of groups under load, or while others keep the loop busy."""

WATCH_KEPT_S = 60.0
"""What was watched is kept for so long after the last watcher went, so that one that lost its
connection goes on where it was."""

WATCHES_MAX = 200
"""Calls that watch: some people, and what watches for them."""

WATCH_REPLY_ITEMS_MAX = 1_000
"""In one reply: some hundred kilobytes, encoded in a few milliseconds."""

WATCHED_GROUPS_MAX = 1_000
"""Groups that one watcher names; who wants more watches all."""

WATCHED_OPERATIONS_MAX = 100
"""The newest, beside those that have not ended: two screens."""

WATCH_SESSIONS_EVERY_S = 1.0
"""A look at sessions reads all subscriptions from the store."""

FINDING_EVENTS_MAX = 200
"""Warnings and errors of a day that findings are made of, the newest."""

NEAR_BOUND_PART = 0.8
"""Of a bound of the daemon: time to look who holds it."""

OPEN_FILES_MIN = 4_096
"""With fewer, clients get fewer than half of the connections that the daemon would serve."""

DISK_FREE_PART_FEW = 0.1
DISK_FREE_PART_LEAST = 0.03
"""Of the disk: a tenth is the bound of the alert DssDiskFillsUp; below the other it is a matter of
minutes under load."""

STUCK_TOLD = 5
"""Groups that findings name; groups stuck has all."""

SESSION_STALE_MS = 3_600_000
"""A client that restarts is back sooner."""

ENDED_BADLY_TOLD_MS = 24 * 3_600 * 1_000
"""For so long after a start it is told how the daemon before ended: no shift misses it."""

OPERATION_RUNS_MS = 10 * 60_000
"""Leases end in seconds, so an operation that runs for longer waits for something odd."""

SCHEDULE_OVERDUE_MS = 10 * 60_000
"""A run that is due begins within its jitter, minutes at most."""

JOB_UNDRIVEN_MS = 5 * 60_000
"""A driver that is replaced is there again within its lease, seconds."""
