"""Bounds of what the log adopts, reads at once and remembers of producers, with reasons."""

PRODUCERS_MAX = 250_000
"""Producers, counted once a stream, whose last sequences are kept: a start reads all of them within
two seconds, and they take some 100 MiB."""

PRODUCERS_OWNER_MAX = 100_000
"""Those of one principal in one storage topic: a job of 12 streams each second is known for two
hours. A newcomer beyond takes the place of the one that was silent for longest."""

PRODUCERS_FEW = 1_000
PRODUCERS_RESERVE = 62_500
"""The last quarter is for principals that have few in a topic, so that those who have many cannot
keep the others out."""

PRODUCER_FORGOTTEN_US = 24 * 3_600 * 1_000_000
"""A producer's sequences are forgotten once a daemon saw it silent for so long."""

ADOPT_WRITE_BYTES = 4 << 20
"""Frames that are adopted are written and synced in pieces of about this size: a sync of all at
once would keep the disk from the commits of producers meanwhile."""
