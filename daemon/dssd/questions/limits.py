"""Bounds of questions, with units last and reasons."""

SAMPLE_EVERY_S = 5.0
"""How often ends and progress are sampled: 32,000 streams of groups cost some ten milliseconds each
time, in short turns."""

STUCK_AFTER_MS = 60_000
"""A stream with unread records that has had no acknowledgement for so long does not move: longer
than a usual ack wait, so that a record which comes again does not count."""

STUCK_FAILURES = 5
"""A record that failed so often is named, though others of its stream go on around it."""

ENTRIES_PAGE_MAX = 1_000
ENTRIES_BYTES_MAX = 2 << 20
"""Of entries of queues, in one answer: a message has room for twice that, and one entry is at most
a little larger than a record."""
