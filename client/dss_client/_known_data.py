"""Recognises, after a reconnect, whether the daemon still has the same data.

A daemon that was restored from a backup lost everything after the backup. It gives no offset to
another record, so a client that goes on finds a gap; but a client that remembers acks has to know.
"""

import logging

_LOG = logging.getLogger("dss_client")


class KnownData:
    """The incarnation of the data that one part of a client knows."""

    __slots__ = ("_incarnation", "_whose")

    def __init__(self, whose: str, incarnation: bytes = b"") -> None:
        self._whose = whose
        self._incarnation = incarnation

    def note(self, incarnation: bytes) -> None:
        """Note the incarnation that the daemon names; an older daemon names none."""
        if not incarnation:
            return
        if self._incarnation not in (b"", incarnation):
            _LOG.warning(
                "%s: the daemon has other data than before: it was restored from a backup, and what"
                " was stored or acknowledged after that backup is gone; offsets go on after a gap",
                self._whose,
                extra={"event": "daemon.other-data"},
            )
        self._incarnation = incarnation
