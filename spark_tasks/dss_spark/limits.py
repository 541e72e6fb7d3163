"""Bounds of what runs on Spark that several modules take, with units last and reasons."""

STAGED_BATCH_BYTES = 8 << 20
"""Records of one partition gathered before they are cut into frames: flat memory, usual frames."""

SLICE_ROWS = 65_536
"""Rows of input files that one task reads and makes into records."""

AUTO_BYTES = 8 << 30
"""What `--engine auto` gives to Spark: below that one process without a shuffle is quicker on one
machine (measured: three times at half a gigabyte)."""
