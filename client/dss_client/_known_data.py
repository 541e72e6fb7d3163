"""Which data a daemon has, and whether it is still the same when its connection comes back.

A daemon that was restored from a backup lost what came behind that. It gives no offset to another
record, so who goes on gets a gap; but whoever remembers what was acknowledged is to know of it.
"""

import logging

_LOG = logging.getLogger("dss_client")


class KnownData:
    """The incarnation of the data that one part of a client has met."""

    __slots__ = ("_incarnation", "_whose")

    def __init__(self, whose: str, incarnation: bytes = b"") -> None:
        self._whose = whose
        self._incarnation = incarnation

    def note(self, incarnation: bytes) -> None:
        """The daemon says which it has; an older one says nothing."""
        if not incarnation:
            return
        if self._incarnation not in (b"", incarnation):
            _LOG.warning(
                "%s: the daemon has other data than before: it was restored from a backup, and what"
                " was stored or acknowledged behind that is gone; offsets go on behind a gap",
                self._whose,
                extra={"event": "daemon.other-data"},
            )
        self._incarnation = incarnation
