"""Bounds of the work on queues. Units last, with reasons."""

QUEUE_JOBS_MAX = 16
"""Moves, and reads of queues that are opened, at a time in the whole daemon: each holds a read and
what it gathered. They wait for one group commit together."""

QUEUE_READ_BYTES = 256 << 10
"""What is read at a time of a queue that is opened."""

MOVE_READ_BYTES = 256 << 10
"""What is read at a time for a move: what becomes of a thousand small records is looked up without
giving way, for a few milliseconds."""

MOVE_RECORD_BYTES = 2 << 10
"""How much is read for each record that is wanted, at first: what is larger is read again. Records
between them are read too, but not decoded."""

MOVE_GAP_OFFSETS = 256
"""Records of a move that lie no further apart are read together."""

MOVE_GATHERED_BYTES = 4 << 20
"""Records that are gathered before they are appended; a full one fits several times."""

FRAME_ENTRIES_MAX = 512
"""Entries that are made one frame without giving way: a millisecond and a half."""

SLICE_BYTES = 64 << 10
"""Frames that are decoded at a time: some hundred small records, a fraction of a millisecond."""

ENTRIES_TOLD_MAX = 512
"""Entries that a lane being opened is told of at a time: measured 1 to 3 µs each for its window."""

OPEN_AGAIN_S = 1.0
"""After a read of a queue failed, before it is tried again."""

FAILING_ATTEMPT = 3
"""A record that fails so often is told: one stumble is usual, and two may be."""

KEY_TOLD_BYTES = 64
"""Of a key, in an event: as much as tells it from others."""

LOOKED_AT_BYTES = 128 << 10
"""One read of a look by operators: some hundred entries, decoded in a thread in a few milliseconds:
no longer than one thread keeps the interpreter from the others, so that the loop gets its turn."""
