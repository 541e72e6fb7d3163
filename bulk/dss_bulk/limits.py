"""Bounds of the drivers of bulk jobs that several modules take, with units last and reasons."""

STAGED_BATCH_BYTES = 32 << 20
"""Records gathered before they are routed and written: each partition gets frames of the usual
size, and memory stays flat however large the chunk is."""

BACKFILL_ROWS_PER_BATCH = 65_536
"""Rows read and made into records at once."""

REJECTS_MAX = 100_000
"""Rejected rows of one job; a job with more of them has the wrong options."""

AUDIT_EXAMPLES_MAX = 5
"""Places that a report names of each finding: enough to look at, the count says the rest."""

AUDIT_OUTPUT_BYTES_MAX = 60 << 10
"""What a chunk leaves in the manifest: the daemon takes 64 KiB."""
