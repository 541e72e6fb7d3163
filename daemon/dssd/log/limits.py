"""Bounds of what the log adopts, reads at once and remembers of producers, with reasons."""

PRODUCERS_MAX = 250_000
"""How many producers, counted once for each stream, have their last sequences kept: a start reads
all of them within two seconds, and they take some 100 MiB."""

PRODUCERS_OWNER_MAX = 100_000
"""How many producers of one principal are remembered in one storage topic. A job that opens a
producer on 12 streams each second is remembered for two hours. At the limit a new producer replaces
the one that was silent for longest."""

PRODUCERS_FEW = 1_000
PRODUCERS_RESERVE = 62_500
"""A quarter of the room is reserved for principals with few producers in a topic, so that
principals with many cannot keep them out."""

PRODUCERS_REFUSED_MAX = 16_384
"""Of how many new producers it is known that their first frame found no room: more than begin while
a disk is full, in 5 MiB."""

PRODUCER_FORGOTTEN_US = 24 * 3_600 * 1_000_000
"""A producer's sequences are forgotten once a daemon saw it silent for so long."""

ADOPT_WRITE_BYTES = 4 << 20
"""Adopted frames are written and synced in pieces of about this size: one sync of all would block
the commits of producers."""
