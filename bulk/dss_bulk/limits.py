"""Every bound of the drivers of bulk jobs, with its unit last and its reason."""

STAGED_BATCH_BYTES = 32 << 20
"""Records gathered before they are routed and written: each partition gets frames of the usual
size, and memory stays flat however large the chunk is."""

EXPORT_ROWS_PER_GROUP = 131_072
"""Rows of a row group of Parquet: readers prune by them, and larger ones compress little better."""

BACKFILL_ROWS_PER_BATCH = 65_536
"""Rows read and made into records at once."""

BACKFILL_ROWS_PER_CHUNK = 65_536
"""Rows that are published at once: some 16 MiB of usual records."""

REJECTS_MAX = 100_000
"""Rejected rows of one job; a job with more of them has the wrong options."""

FUNCTION_BYTES_MAX = 32 << 10
"""Text of a transform's file: it is kept in the job's params, which have 64 KiB of JSON."""
