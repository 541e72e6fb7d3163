"""Every bound of a session's own work, with its unit last and its reason."""

READ_AT_ONCE_BYTES_MAX = 256 << 10
"""What of grown streams a session reads at once before it leaves the rest to its readers, which
give way to each other: copying so much takes 0.1 ms."""

READ_AT_ONCE_COST_BYTES = 16 << 10
"""What such a read counts for beside its bytes, so that there are sixteen at most: each takes 0.1
to 0.2 ms with its steps of the delivery window, and a turn on the loop is 2 ms."""
