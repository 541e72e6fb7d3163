"""Bounds of questions, with units last and reasons."""

LOOK_CHUNK_BYTES_MAX = 1 << 18
"""One read of a look for a key. Where the key's bytes are in it, its records are decoded, which
holds the interpreter for some milliseconds."""

LOOK_BYTES_MAX = 32 << 20
"""What one look for a key reads, of all streams: some ten milliseconds where it comes from memory.
A caller asks on behind it."""

LOOK_BACK_RECORDS_MAX = 65_536
"""How far below the floor the newest done record of a key is looked for, where none is open: older
ones interest nobody who waits for one."""

KEY_RECORDS_MAX = 10
"""Open records of a key in one answer, the oldest: they come one after the other."""

KEY_STREAMS_MAX = 64
"""Streams in one look for a key: one for each storage topic that may hold it."""
