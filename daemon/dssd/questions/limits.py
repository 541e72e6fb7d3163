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
