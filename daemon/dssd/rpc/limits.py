"""Bounds of answers, of peers and of what is kept of calls, with units last and reasons."""

ARRIVAL_BYTES_MAX = 256 << 20
"""Bytes of incoming messages of all calls together: 64 of the largest size, a thousand usual
ones."""


HANDSHAKE_TIMEOUT_MS = 5_000
"""A silent connection must not hold a descriptor for long."""
