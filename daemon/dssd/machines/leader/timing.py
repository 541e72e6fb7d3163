"""The durations of a leader.

The defaults are those of the daemon; a simulator plays leaders with others. Invariant: a duration
that depends on the lease is computed from it.
"""

from dataclasses import dataclass

from dss_core.limits import LEASE_MS
from dssd.limits import RESEND_FIRST_MS, REVOKE_DEADLINE_MS, SILENT_HOLDER_PERCENT

JOIN_GATHER_MS = 200
"""Joins and leaves within this time make one rebalance: clients of one application start and stop
together, and each rebalance moves streams."""

RESERVE_PERCENT = 67
"""The part of the lease for which streams wait, after a restart of the daemon, for the sessions
that held them: 4 s with a lease of 6 s. A client that hears nothing hands out for 0.4 leases, by
its own clock."""

LEADER_IDLE_MS = 30_000
"""A leader without members stops after this; a client that comes back sooner finds it running."""

COMMIT_GATHER_MS = 50
"""Reports within this time share one commit, unless a client waits for one of them; a crash costs
at most so much progress."""


@dataclass(frozen=True, slots=True)
class LeaderTiming:
    """The durations, in milliseconds."""

    lease_ms: int = LEASE_MS
    gather_ms: int = JOIN_GATHER_MS
    """Joins and leaves within it make one rebalance."""
    resend_first_ms: int = RESEND_FIRST_MS
    revoke_deadline_ms: int = REVOKE_DEADLINE_MS
    commit_ms: int = COMMIT_GATHER_MS
    """Reports within it make one commit; up to `COMMIT_GATHER_MS_MAX` where commits take long."""
    reserve_percent: int = RESERVE_PERCENT
    """Of the lease."""
    idle_ms: int = LEADER_IDLE_MS
    """A leader without members stops after it."""

    @property
    def reserve_ms(self) -> int:
        """How long streams wait for their sessions after a restart of the daemon."""
        return self.lease_ms * self.reserve_percent // 100

    @property
    def silent_holder_ms(self) -> int:
        """After this time a client that hears nothing from the daemon hands out nothing more."""
        return self.lease_ms * SILENT_HOLDER_PERCENT // 100

    @property
    def eviction_answer_ms(self) -> int:
        """The time that an evicted member has at least, even without a grace."""
        return min(self.silent_holder_ms, self.revoke_deadline_ms)

    @property
    def resend_max_ms(self) -> int:
        """The bound of the doubling pauses between resends."""
        return self.lease_ms // 4
