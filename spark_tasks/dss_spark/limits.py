"""Bounds of the work on Spark that several modules use, with units last and reasons."""

STAGED_BATCH_BYTES = 8 << 20
"""Records of a partition that are gathered before they are cut into frames: flat memory, and frames
of the usual size."""

SLICE_ROWS = 65_536
"""Rows of input files that one task reads and turns into records."""

AUTO_BYTES = 8 << 30
"""From how many bytes on `--engine auto` chooses Spark: below that, one process without a shuffle
is quicker on one machine (measured: three times at half a gigabyte)."""
