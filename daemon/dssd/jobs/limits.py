"""Bounds of bulk jobs, with units last and reasons."""

ACQUIRE_TOKEN_BYTES_MAX = 64
RATE_BYTES_S_MIN = 1 << 10
HOPS_DEFAULT = 4
"""Copies of copies that a job makes unless it is told otherwise."""

TICK_S = 1.0
"""How often leases are looked at."""
