"""Bounds of the drivers of bulk jobs that several modules take, with units last and reasons."""

STAGED_BATCH_BYTES = 32 << 20
"""How many records are gathered before they are routed and written: each partition gets frames of
the usual size, and memory stays flat, however large the chunk is."""

BACKFILL_ROWS_PER_BATCH = 65_536
"""How many rows are read and made into records at once."""

REJECTS_MAX = 100_000
"""How many rejected rows a job may have; more of them mean wrong options."""

AUDIT_EXAMPLES_MAX = 5
"""How many places a report names for each finding: enough to look at, and the count says the
rest."""

AUDIT_OUTPUT_BYTES_MAX = 60 << 10
"""How much a chunk keeps in the manifest: the daemon takes 64 KiB."""
