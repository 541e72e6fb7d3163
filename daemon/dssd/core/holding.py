"""The state of a borrower: what it holds, and what it waits for.

Apart from `dssd.core.borrower` so that its rules stand in one file that a reader takes in at a
sitting. Invariant: a stream that is held has a grant epoch above `Borrower.ended_epochs`.
"""

from enum import Enum

from dss_core.ids import StreamId
from dssd.core.attempts import merged_attempts
from dssd.core.deadlines import Deadlines
from dssd.core.messages import BorrowerId, GrantedStream, SessionId, StreamReport

RESEND_FIRST_MS = 250
"""Above any round trip inside one process, far below the lease."""


class BorrowerState(Enum):
    """Where a borrower stands."""

    # Members are single objects; the hash that Enum gives them is computed in Python each time.
    __hash__ = object.__hash__

    CONNECTING = "connecting"
    CONNECTED = "connected"
    UNSUBSCRIBING = "unsubscribing"
    GONE = "gone"


class Timer(Enum):
    """What a borrower waits for; its streams' resends are keyed by stream."""

    FIND = "find"
    PING = "ping"
    SUSPEND = "suspend"
    LEASE = "lease"
    UNSUBSCRIBE = "unsubscribe"


class HeldStream:
    """A grant that this borrower holds."""

    __slots__ = ("finished", "report", "resend_ms", "revoking")

    def __init__(self, report: StreamReport) -> None:
        self.report = report
        self.revoking = False
        self.finished = False
        """The final report was made."""
        self.resend_ms = RESEND_FIRST_MS


class Borrower:
    """The state. Owned by its agent; only `step` changes it, in place."""

    __slots__ = (
        "borrower_id", "client_id", "ended_epochs", "leader_epoch", "lease_ms", "session_id",
        "standing", "state", "streams", "suspended", "timers", "wake_ms", "wanted_ms",
    )  # fmt: skip

    def __init__(
        self, borrower_id: BorrowerId, session_id: SessionId, client_id: str, lease_ms: int
    ) -> None:
        self.borrower_id = borrower_id
        self.session_id = session_id
        self.client_id = client_id
        self.lease_ms = lease_ms
        self.state = BorrowerState.CONNECTING
        self.leader_epoch = 0
        self.streams: dict[StreamId, HeldStream] = {}
        self.ended_epochs: dict[StreamId, int] = {}
        self.suspended = False
        self.standing = ""
        self.timers: Deadlines[Timer | StreamId] = Deadlines()
        self.wanted_ms: int | None = None
        """When the leader was first looked for since it last answered."""
        self.wake_ms: int | None = None


def unused_report(granted: GrantedStream) -> StreamReport:
    """The final report of a grant of which nothing was sent to the client."""
    return StreamReport(
        granted.stream,
        granted.grant_epoch,
        granted.progress,
        granted.frontier,
        granted.attempts,
        sent=granted.frontier,
    )


def merge_report(held: HeldStream, report: StreamReport, *, final: bool) -> None:
    """Let a report of the session add to what is known; a grant only moves on."""
    known = held.report
    progress = known.progress.merged(report.progress)
    frontier = max(known.frontier, report.frontier)
    sent = known.sent if report.sent is None else max(report.sent, known.sent or 0)
    if final:
        held.finished = True
        # The client dropped what lies above its frontier, so nothing there was handed out.
        sent = frontier if report.sent is None else max(report.sent, frontier)
    attempts = merged_attempts(known.attempts, report.attempts, progress)
    held.report = StreamReport(
        known.stream, known.grant_epoch, progress, frontier, attempts, sent, report.stalled
    )
