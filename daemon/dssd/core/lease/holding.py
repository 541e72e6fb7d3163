"""The state of a borrower of a lease group, and what every rule of it needs.

Apart from `dssd.core.lease.borrower` so that its rules stand in one file that a reader takes in at
a sitting. Invariant: a stream that is held has a grant epoch above `LeaseBorrower.ended_epochs`.
"""

from enum import Enum

from dss_core.ids import StreamId
from dssd.core.borrowing import (
    BorrowerEffect,
    DropStream,
    Ended,
    FinishStream,
    InstallStream,
    Recreate,
    SendToLeader,
    Standing,
)
from dssd.core.deadlines import Deadlines
from dssd.core.holding import HeldStream, Timer
from dssd.core.messages import (
    BorrowerId,
    Disconnect,
    GrantedStream,
    RevokeFinished,
    SessionId,
    StreamReport,
)

Effects = list[BorrowerEffect]


class LeaseState(Enum):
    """Where a borrower stands."""

    # Members are single objects; the hash that Enum gives them is computed in Python each time.
    __hash__ = object.__hash__

    CONNECTING = "connecting"
    REPLAYING = "replaying"
    UPDATING = "updating"
    UNSUBSCRIBING = "unsubscribing"
    GONE = "gone"


class LeaseBorrower:
    """The state. Owned by its agent; only `dssd.core.lease.borrower.step` changes it, in place."""

    __slots__ = (
        "borrower_id", "client_id", "ended_epochs", "leader_epoch", "lease_ms", "session_id",
        "standing", "state", "streams", "suspended", "timers", "version", "version_old", "wake_ms",
    )  # fmt: skip

    def __init__(
        self, borrower_id: BorrowerId, session_id: SessionId, client_id: str, lease_ms: int
    ) -> None:
        self.borrower_id = borrower_id
        self.session_id = session_id
        self.client_id = client_id
        self.lease_ms = lease_ms
        self.state = LeaseState.CONNECTING
        self.leader_epoch = 0
        self.version = 0
        """Of the stream set; 0 while there is none."""
        self.version_old = 0
        """While updating: of the set before."""
        self.streams: dict[StreamId, HeldStream] = {}
        """The set, and the streams that are taken over: those are `revoking`."""
        self.ended_epochs: dict[StreamId, int] = {}
        self.suspended = False
        self.standing = ""
        self.timers: Deadlines[Timer | StreamId] = Deadlines()
        self.wake_ms: int | None = None

    def suspend_after_ms(self) -> int:
        """How long after the last renewal delivery goes on."""
        return self.lease_ms * 6 // 10


def install(state: LeaseBorrower, granted: GrantedStream, effects: Effects) -> HeldStream:
    """Hold a stream; an older grant of it ends."""
    if granted.stream in state.streams:
        drop(state, granted.stream, "granted anew", effects)
    report = StreamReport(
        granted.stream,
        granted.grant_epoch,
        granted.progress,
        granted.frontier,
        granted.attempts,
    )
    held = state.streams[granted.stream] = HeldStream(report)
    effects.append(InstallStream(granted))
    return held


def finish(held: HeldStream, deadline_ms: int, effects: Effects) -> None:
    """Deliver no more of a stream; nothing where that was said before."""
    if not held.revoking:
        held.revoking = True
        report = held.report
        effects.append(FinishStream(report.stream, report.grant_epoch, deadline_ms))


def drop(state: LeaseBorrower, stream: StreamId, reason: str, effects: Effects) -> None:
    """Forget a stream; its grant never comes back."""
    grant_epoch = state.streams.pop(stream).report.grant_epoch
    state.ended_epochs[stream] = max(state.ended_epochs.get(stream, 0), grant_epoch)
    state.timers.clear(stream)
    effects.append(DropStream(stream, grant_epoch, reason))


def drop_all(state: LeaseBorrower, reason: str, effects: Effects) -> None:
    """Forget every stream."""
    for stream in tuple(state.streams):
        drop(state, stream, reason, effects)


def forget_up_to(
    state: LeaseBorrower, stream: StreamId, grant_epoch: int, reason: str, effects: Effects
) -> None:
    """The grants of the stream up to that epoch are over, come what may."""
    held = state.streams.get(stream)
    if held is not None and held.report.grant_epoch <= grant_epoch:
        drop(state, stream, reason, effects)
    state.ended_epochs[stream] = max(state.ended_epochs.get(stream, 0), grant_epoch)


def answer_finished(
    state: LeaseBorrower, stream: StreamId, grant_epoch: int, effects: Effects
) -> None:
    """Say that a grant is not held."""
    answer = RevokeFinished(state.borrower_id, state.leader_epoch, stream, grant_epoch)
    effects.append(SendToLeader(answer))


def say_goodbye(state: LeaseBorrower, effects: Effects) -> None:
    """Tell the leader how everything stands, and that this borrower ends."""
    reports = tuple(held.report for held in state.streams.values())
    effects.append(SendToLeader(Disconnect(state.borrower_id, state.leader_epoch, reports)))


def end(state: LeaseBorrower, last: Ended | Recreate, effects: Effects) -> None:
    """This incarnation is over."""
    state.state = LeaseState.GONE
    state.timers = Deadlines()
    effects.append(last)


def tell_standing(state: LeaseBorrower, effects: Effects) -> None:
    """Say how it stands, where that changed."""
    if state.state is LeaseState.GONE:
        return
    standing = "active" if state.streams else "standby"
    if state.state is LeaseState.CONNECTING:
        standing = "connecting"
    if standing != state.standing:
        state.standing = standing
        effects.append(Standing(standing))
