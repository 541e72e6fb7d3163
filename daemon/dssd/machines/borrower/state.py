"""The state of a borrower under either protocol: what it holds, and what it waits for.

`Holder` is what both protocols keep; `Borrower` and `LeaseBorrower` add what one of them needs.
`borrow_machine` and `lease_machine` change it, through `grants`, `leader_link` and `ending`.
Invariants: a stream that is held has a grant epoch above its entry in `Holder.ended_epochs`; the
version of a `LeaseBorrower` never falls. This module does not know how streams are granted, nor
what renews the lease.
"""

from collections.abc import Iterator
from dataclasses import replace
from enum import Enum

from dss_core.ids import StreamId
from dssd.limits import RESEND_FIRST_MS
from dssd.machines.attempts import merged_attempts
from dssd.machines.borrower.events import BorrowerEffect, Standing, SuspendDelivery, WakeAt
from dssd.machines.deadlines import Deadlines
from dssd.machines.messages import BorrowerId, LeaderWanted, SessionId, StreamReport
from dssd.machines.queues import merged_queues

Effects = list[BorrowerEffect]


class BorrowerState(Enum):
    """The state of a borrower. Each protocol has states of its own for a member that is served."""

    # Members are single objects; the hash that Enum gives them is computed in Python each time.
    __hash__ = object.__hash__

    CONNECTING = "connecting"
    CONNECTED = "connected"
    """Served under the borrow protocol."""
    REPLAYING = "replaying"
    """Served in a lease group."""
    UPDATING = "updating"
    """Served in a lease group, while streams of it are taken over."""
    UNSUBSCRIBING = "unsubscribing"
    GONE = "gone"


SERVED = frozenset({BorrowerState.CONNECTED, BorrowerState.REPLAYING, BorrowerState.UPDATING})
"""It has a leader and takes its grants."""


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


class KnownPause:
    """What a borrower knows of the pause of its group."""

    __slots__ = ("asked", "change", "leader_epoch", "obeyed", "paused")

    def __init__(self) -> None:
        self.leader_epoch = 0
        self.change = 0
        """The newest change that is known, under that leader."""
        self.paused = False
        self.asked = 0
        """How often the client was asked to stop handing out, or to go on."""
        self.obeyed = True
        """The client has done what it was asked last."""


class Holder:
    """What a borrower knows under either protocol. Owned by its agent; a step changes it in place.

    `Borrower` and `LeaseBorrower` add what only their protocol needs.
    """

    __slots__ = (
        "borrower_id", "by_shard", "client_id", "ended_epochs", "leader_epoch", "lease_ms", "pause",
        "session_id", "standing", "state", "streams", "subscription", "suspended", "timers",
        "wake_ms",
    )  # fmt: skip

    def __init__(
        self,
        borrower_id: BorrowerId,
        session_id: SessionId,
        client_id: str,
        lease_ms: int,
        subscription: int = 0,
    ) -> None:
        self.borrower_id = borrower_id
        self.session_id = session_id
        self.subscription = subscription
        self.by_shard = False
        """Its program keeps state by shard, and is told which it has."""
        self.client_id = client_id
        self.lease_ms = lease_ms
        self.state = BorrowerState.CONNECTING
        self.leader_epoch = 0
        self.streams: dict[StreamId, HeldStream] = {}
        self.ended_epochs: dict[StreamId, int] = {}
        self.suspended = False
        self.pause = KnownPause()
        self.standing = ""
        self.timers: Deadlines[Timer | StreamId] = Deadlines()
        self.wake_ms: int | None = None

    def suspend_after_ms(self) -> int:
        """How long delivery goes on after the last sign of life of the leader."""
        return self.lease_ms * 6 // 10

    def leader_wanted(self, now_ms: int) -> LeaderWanted:
        """The message by which it looks for a leader, and presents what it holds."""
        held = tuple(held.report for held in self.streams.values())
        return LeaderWanted(
            self.borrower_id,
            self.leader_epoch,
            self.session_id,
            self.client_id,
            held,
            paused=self.pause.paused,
            subscription=self.subscription,
            by_shard=self.by_shard,
        )


class Borrower(Holder):
    """The state under the borrow protocol."""

    __slots__ = ("started_ms",)

    def __init__(
        self,
        borrower_id: BorrowerId,
        session_id: SessionId,
        client_id: str,
        lease_ms: int,
        subscription: int = 0,
    ) -> None:
        super().__init__(borrower_id, session_id, client_id, lease_ms, subscription)
        self.started_ms: int | None = None
        """When it began to look for its leader."""


class LeaseBorrower(Holder):
    """The state in a lease group.

    Its `streams` are its stream set and the streams that are taken over, which are `revoking`.
    """

    __slots__ = ("version", "version_old")

    def __init__(
        self,
        borrower_id: BorrowerId,
        session_id: SessionId,
        client_id: str,
        lease_ms: int,
        subscription: int = 0,
    ) -> None:
        super().__init__(borrower_id, session_id, client_id, lease_ms, subscription)
        self.version = 0
        """The version of the stream set; 0 while there is none."""
        self.version_old = 0
        """While updating: the version of the set before."""

    def leader_wanted(self, now_ms: int) -> LeaderWanted:
        """The same, with the version of its stream set."""
        return replace(super().leader_wanted(now_ms), version=self.version, sent_ms=now_ms)

    def active(self) -> list[HeldStream]:
        """The streams of the set that are not taken over."""
        return [held for held in self.streams.values() if not held.revoking]

    def taken_over(self) -> list[HeldStream]:
        """The streams that are to be given back."""
        return [held for held in self.streams.values() if held.revoking]


def merge_report(held: HeldStream, report: StreamReport, *, final: bool) -> None:
    """Merge a report of the session into what is known; a grant only moves on."""
    known = held.report
    progress = known.progress.merged(report.progress)
    frontier = max(known.frontier, report.frontier)
    sent = known.sent if report.sent is None else max(report.sent, known.sent or 0)
    if final:
        held.finished = True
        # The client dropped what lies above its frontier, so nothing there was handed out.
        sent = frontier if report.sent is None else max(report.sent, frontier)
    attempts = merged_attempts(known.attempts, report.attempts, progress)
    fate = known.fate.merged(report.fate, progress)
    held.report = StreamReport(
        known.stream,
        known.grant_epoch,
        progress,
        frontier,
        attempts,
        sent,
        report.stall,
        fate,
        report.is_awaited,
        merged_queues(known.queues, report.queues),
    )


def suspend(state: Holder, effects: Effects) -> None:
    """Deliver nothing until the leader answers again."""
    if not state.suspended:
        state.suspended = True
        effects.append(SuspendDelivery())


def due(state: Holder, now_ms: int) -> Iterator[Timer | StreamId]:
    """The timers that are due, earliest first, until one of them ends the borrower."""
    for key in state.timers.due(now_ms):
        # A timer that came due first may have ended the borrower.
        if state.state is BorrowerState.GONE:
            return
        yield key


def tell_changes(state: Holder, effects: Effects) -> None:
    """At the end of a step, tell the standing and the next wake-up time, if they changed."""
    if state.state is not BorrowerState.GONE:
        standing = "active" if state.streams else "standby"
        if state.state is BorrowerState.CONNECTING:
            standing = "connecting"
        if standing != state.standing:
            state.standing = standing
            effects.append(Standing(standing))
    wake_ms = state.timers.next_ms()
    if wake_ms is not None and wake_ms != state.wake_ms:
        effects.append(WakeAt(wake_ms))
    state.wake_ms = wake_ms
