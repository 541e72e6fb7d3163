"""Bounds of answers, of peers and of what is kept of calls, with units last and reasons."""

ARRIVAL_BYTES_MAX = 256 << 20
"""Messages on their way to the daemon, of all calls together: 64 of the largest size, a thousand
usual ones."""


HANDSHAKE_TIMEOUT_MS = 5_000
"""A connection that says nothing must not hold a descriptor for long."""
