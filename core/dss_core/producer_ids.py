"""Ids of producers, which say when the producer began.

    u8 marker │ u56 microseconds since 1970, big endian │ 8 random bytes

The time is the daemon's, as it came with the description of the topic, so that a daemon which has
forgotten producers can tell one of those from one that is new. Invariant: an id says one beginning
for ever. An id of another form is as good, but says none.
"""

import secrets

NO_PRODUCER = bytes(16)
"""The id in frames that nobody numbers: such a frame is never taken for one sent twice."""

_MARKER = 1
_RANDOM_BYTES = 8
_TIMES_END = 1 << 55
"""An id of another form seldom shows an earlier one."""


def new_producer_id(began_us: int) -> bytes:
    """The id of a producer that begins at this time of its daemon."""
    time_us = min(max(began_us, 0), _TIMES_END - 1)
    return bytes((_MARKER,)) + time_us.to_bytes(7) + secrets.token_bytes(_RANDOM_BYTES)


def began_us(producer_id: bytes) -> int | None:
    """When the producer began, if its id says so."""
    if producer_id[0] != _MARKER:
        return None
    time_us = int.from_bytes(producer_id[1:8])
    return time_us if time_us < _TIMES_END else None
