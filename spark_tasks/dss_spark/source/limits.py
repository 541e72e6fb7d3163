"""Every bound of the data source, with its unit last and its reason."""

SLICE_BYTES = 32 << 20
"""What a task reads, unless an option says otherwise: a task that is lost costs less than a second,
and a topic of some gigabytes still has few of them."""

SLICE_BYTES_MIN = 1 << 10
"""Below it a scan is all tasks and no records."""

SLICES_MAX = 100_000
"""Tasks of one scan: more than that, and Spark's driver does nothing else."""

BATCHES_AHEAD = 4
"""Read ahead of what Spark takes: the next answer is under way while a batch is passed on, and
memory stays flat however large a slice is."""

AWAY_S = 60.0
"""How long a daemon may be away, for a restart, while records are read or a batch is planned."""

AGAIN_S = 0.5
"""Between two tries to reach it."""

JOIN_S = 30.0
"""How long a task waits for its reading to end once nobody takes its batches."""
