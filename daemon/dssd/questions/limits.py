"""Bounds of questions, with units last and reasons."""

SAMPLE_EVERY_S = 5.0
"""How often ends and progress are sampled: 32,000 streams of groups cost some ten milliseconds each
time, in short turns."""

STUCK_AFTER_MS = 60_000
"""A stream with unread records that has had no acknowledgement for so long does not move: longer
than a usual ack wait, so that a record which comes again does not count."""

STUCK_HANDING_OVER_MS = 10_000
"""A stream that is lent or given back for longer than a lease waits for a holder that is frozen."""

STUCK_FAILURES = 5
"""A record that failed so often is named, though others of its stream go on around it."""

OLDEST_LOOKUPS_MAX = 256
"""Times of records at a floor that one list, or one look of the sampler, reads from the log where
samples do not reach: some milliseconds. What is left shows the time of the floor before, which is
no later, or none."""

WATCHED_GROUPS_MAX = 1_000
"""Groups that one watcher names; who wants more watches all."""
