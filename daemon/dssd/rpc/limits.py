"""Bounds of answers, of peers and of what is kept of calls, with units last and reasons."""

from dssd.limits import APPEND_BYTES_IN_FLIGHT_MAX, TAIL_CACHE_BYTES_MAX, WRITER_QUEUE_BYTES_MAX

OPERATOR_CONNECTIONS_MAX = 64
OPERATOR_CALLS_MAX = 256
"""What is kept for operators, at a socket of their own: a few people and what watches for them."""

PEERS_SHOWN_MAX = 5
"""Peers in the daemon's status, those that hold most."""

ARRIVAL_BYTES_MAX = 256 << 20
"""Messages on their way to the daemon, of all calls together: 64 of the largest size, a thousand
usual ones."""

HEAP_BOUNDED_BYTES = (
    TAIL_CACHE_BYTES_MAX + WRITER_QUEUE_BYTES_MAX + APPEND_BYTES_IN_FLIGHT_MAX + (64 << 20)
)
"""What other bounds let the heap hold, caches and queues of log and store."""

GROUPS_LISTED_MAX = 5_000
"""In one answer: some two megabytes; a caller asks on behind it."""

CHUNKS_REPLY_BYTES = 1 << 20
"""What the chunks of a job in one answer take, roughly: a quarter of a message."""

HANDSHAKE_TIMEOUT_MS = 5_000
"""A connection that says nothing must not hold a descriptor for long."""
