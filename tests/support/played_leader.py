"""A leader with a clock and a store of the test's own; the test plays its borrowers."""

from dss_core.ids import StreamId
from dss_core.progress import Progress
from dssd.machines.leader.events import (
    Committed,
    CursorMove,
    LeaderEffect,
    LeaderInput,
    Persist,
    Received,
    Send,
    SetVersion,
    Stop,
    StoredStream,
    StreamRecord,
    Ticked,
    TookOver,
    WakeAt,
)
from dssd.machines.leader.machine import step
from dssd.machines.leader.slicing import Slicing
from dssd.machines.leader.state import Leader
from dssd.machines.messages import ToBorrower, ToLeader

LEADER = 4
"""Its epoch."""


def stream(at: int) -> StreamId:
    """A partition of the one topic."""
    return StreamId(1, at)


def session_of(borrower_id: bytes) -> bytes:
    """Each borrower has a session of its own."""
    return b"session of " + borrower_id


def fresh(at: int, *, sealed_end: int | None = None) -> StoredStream:
    """A stream that nobody has held, consumed up to 10 of 100 records."""
    return StoredStream(stream(at), Progress(10), 10, 100, sealed_end)


def of_kind(messages: list[ToBorrower], kind: type) -> list[ToBorrower]:
    """The messages of one kind."""
    return [message for message in messages if isinstance(message, kind)]


class LeaderRun:
    """A leader that took over, its clock, and a store that commits when it is told to."""

    def __init__(
        self,
        leader: Leader,
        *stored: StoredStream,
        restarted: bool = False,
        versions: tuple[SetVersion, ...] = (),
        slicing: Slicing | None = None,
        moves: tuple[CursorMove, ...] = (),
    ) -> None:
        self.leader = leader
        self.now_ms = 0
        self.persists: list[Persist] = []
        """Commits under way."""
        self.sent: list[ToBorrower] = []
        self.stopped: list[str] = []
        """For which reasons."""
        self.saved: dict[StreamId, StreamRecord] = {}
        self.versions: dict[bytes, int] = {}
        """Closed stream sets, by session."""
        self.feed(TookOver(0, stored, restarted, versions, moves, slicing=slicing))

    def feed(self, given_input: LeaderInput) -> list[LeaderEffect]:
        """Take a step, and keep its effects."""
        effects = step(self.leader, given_input)[1]
        for effect in effects:
            match effect:
                case Persist():
                    self.persists.append(effect)
                case Send(message):
                    self.sent.append(message)
                case Stop(reason):
                    self.stopped.append(reason)
                case WakeAt():
                    pass
        return effects

    def tell(self, message: ToLeader) -> list[ToBorrower]:
        """The messages sent in answer, before anything is durable."""
        before = len(self.sent)
        self.feed(Received(message, self.now_ms))
        return self.sent[before:]

    def commit(self, *, end: int = 100) -> list[ToBorrower]:
        """Make the commit under way durable; returns the messages that follow."""
        before = len(self.sent)
        persist = self.persists.pop(0)
        self.saved.update({record.stream: record for record in persist.records})
        for each in persist.versions:
            if each.version is None:
                self.versions.pop(each.session_id, None)
            else:
                assert each.version > self.versions.get(each.session_id, 0)
                self.versions[each.session_id] = each.version
        ends = tuple((measured, end) for measured in persist.measure)
        self.feed(Committed(persist.commit_id, self.now_ms, ends))
        return self.sent[before:]

    def commit_all(self) -> list[ToBorrower]:
        """Make everything under way durable, and the commits that follow from it."""
        sent: list[ToBorrower] = []
        while self.persists:
            sent += self.commit()
        return sent

    def pass_ms(self, duration_ms: int) -> list[ToBorrower]:
        """Let time pass, waking the leader when it asked for that."""
        before = len(self.sent)
        ends_ms = self.now_ms + duration_ms
        while (at_ms := self.leader.timers.next_ms()) is not None and at_ms <= ends_ms:
            self.now_ms = max(at_ms, self.now_ms)
            self.feed(Ticked(self.now_ms))
        self.now_ms = ends_ms
        return self.sent[before:]
