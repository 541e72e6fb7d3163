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

ERRORS_TOLD_MAX = 1_000
"""Kinds of errors in one answer: as many as anybody tells apart; a caller asks on."""

QUEUE_LOOK_BYTES_MAX = 8 << 20
"""What one call reads of queues: some 20,000 entries, half a second of a thread. A caller asks on
behind it."""
