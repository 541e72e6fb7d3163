"""Bounds of questions, with units last and reasons."""

SAMPLE_EVERY_S = 5.0
"""How often ends and progress are sampled: 32,000 streams of groups cost some ten milliseconds each
time, in short turns."""

STUCK_AFTER_MS = 60_000
"""A stream with unread records counts as stuck after so long without an acknowledgement: longer
than a usual ack wait, so that a redelivery does not count."""

STUCK_FAILURES = 5
"""A record with so many failures is named, although other records of its stream continue."""

ENTRIES_PAGE_MAX = 1_000
ENTRIES_BYTES_MAX = 2 << 20
"""How many bytes of entries one answer has: a message has room for twice that, and one entry is at
most a little larger than a record."""
