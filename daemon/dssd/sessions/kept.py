"""A session in memory: its row, and its connection while it has one.

Invariant: expiry is measured on the monotonic clock, and only while there is no connection.
"""

from dataclasses import dataclass

from dss_core.limits import SESSION_GRACE_S
from dssd.sessions.listing import Connected
from dssd.sessions.session import Session
from dssd.store.rows import SessionRow

GRACE_MS = SESSION_GRACE_S * 1_000


@dataclass(slots=True, eq=False)
class KeptSession:
    """One session."""

    row: SessionRow
    version: int
    connection: Session | None
    expires_at_ms: int | None
    """When it expires, by the monotonic clock; None while it is connected."""
    connected: Connected | None = None
    """The facts of the connection, for people."""

    def is_over(self, now_ms: int) -> bool:
        """Whether it has expired."""
        return self.expires_at_ms is not None and self.expires_at_ms <= now_ms


def kept_ms(row: SessionRow) -> int:
    """How long a session is kept without a connection."""
    return max(row.expiry_ms, GRACE_MS)
