"""Grants of a session with something to report, gathered for a few milliseconds.

Where a client waits for its acks to be durable, the grant is reported at once.

Invariant: while any grant waits, there is a time at which all are reported.
"""

REPORT_INTERVAL_MS = 5
"""A session tells its borrowers how its grants stand at most this often."""


class PendingReports:
    """The grants, and when they are reported."""

    __slots__ = ("_grants", "report_at_ms")

    def __init__(self) -> None:
        self._grants: set[int] = set()
        self.report_at_ms: int | None = None

    def note(self, grant: int, now_ms: int) -> None:
        """There is something to report of the grant."""
        self._grants.add(grant)
        if self.report_at_ms is None:
            self.report_at_ms = now_ms + REPORT_INTERVAL_MS

    def hurry(self, grant: int, now_ms: int) -> None:
        """A client waits for the grant's acks to be durable: it is reported now."""
        self._grants.add(grant)
        self.report_at_ms = now_ms

    def discard(self, grant: int) -> None:
        """The grant was reported in another way, or is over."""
        self._grants.discard(grant)

    def take(self) -> list[int]:
        """The grants that are reported now, in order."""
        self.report_at_ms = None
        grants = sorted(self._grants)
        self._grants.clear()
        return grants
