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

PRODUCER_KEPT_US = 10 * 60 * 1_000_000
"""A producer is never forgotten for want of room before it was silent for so long: longer than a
connection, a client or the network usually takes to come back and send again."""

PRODUCERS_FORGOTTEN_AT_ONCE = 256
"""Where all are at their bound, the largest share gives so many: it is looked for once for them."""

PRODUCERS_LISTED_MAX = 4_096
"""How many of a share are put in order at once; to find them takes one look at all of its topic."""

PRODUCERS_SWEEP_US = 3_600 * 1_000_000
"""Those that are silent for long enough are forgotten this often."""

PRODUCER_FORGOTTEN_US = 24 * 3_600 * 1_000_000
"""A producer's sequences are forgotten once a daemon saw it silent for so long."""

ADOPT_WRITE_BYTES = 4 << 20
"""Frames that are adopted are written and synced in pieces of about this size: a sync of all at
once would keep the disk from the commits of producers meanwhile."""

ADOPT_RESTED_BYTES = 256 << 10
"""Pieces of a copy that rests between them: the sync of a producer waits for one of them."""

ADOPT_READ_BYTES = 1 << 20
"""They are read again in pieces of this size, which stay in the processor's cache."""

TAIL_ENTRIES_AT_ONCE = 256
"""Of the frames in memory, how many batches a read takes between two looks at the
clock: some 60 us."""

QUEUE_ROLLED_BYTES_MIN = 1 << 20
"""The newest file of queues in which all is done goes too, once it has so many bytes: to make the
next one costs more than a few small records take."""
