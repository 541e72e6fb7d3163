"""A leader and real borrowers of either protocol, on one clock, joined by a faultless transport.

The test plays the operators; a member that must not answer is frozen. Invariant: after each call
all messages and commits that were possible at that time are done.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace

from dss_core.ids import StreamId
from dss_core.progress import Progress
from dssd.machines.borrower import borrow_machine, lease_machine
from dssd.machines.borrower import events as borrower_events
from dssd.machines.borrower.state import Borrower, LeaseBorrower
from dssd.machines.leader.events import (
    Committed,
    Concluded,
    CursorMove,
    Instructed,
    Instruction,
    LeaderInput,
    Persist,
    Received,
    Send,
    SessionClosed,
    SetVersion,
    StoredStream,
    StreamRecord,
    StreamsChanged,
    Ticked,
    TookOver,
)
from dssd.machines.leader.hand_over_events import Ban
from dssd.machines.leader.lent_stream import HELD, StreamState
from dssd.machines.leader.machine import step
from dssd.machines.leader.rebalance import planned_hand_overs
from dssd.machines.leader.slicing import Slicing
from dssd.machines.leader.state import Leader
from dssd.machines.leader.stream_set_state import StreamSets
from dssd.machines.messages import GrantedStream, StreamReport, ToBorrower
from support.played_leader import session_of, stream

END = 100
"""Of each stream."""


class PlayedMember:
    """A borrower and its session, which hands out nothing, and settles records when a test says
    so."""

    def __init__(
        self,
        group: "PlayedGroup",
        name: bytes,
        session_id: bytes,
        subscription: int,
        *,
        by_shard: bool = False,
    ) -> None:
        kind = LeaseBorrower if group.protocol == "lease" else Borrower
        client_id = session_id.decode()
        self.machine = kind(name, session_id, client_id, group.lease_ms, subscription)
        self.machine.by_shard = by_shard
        self.frozen = False
        """It neither gets nor sends messages."""
        self.holding = False
        """Its user does not settle records in flight, so it does not give back what is revoked."""
        self.granted: dict[StreamId, GrantedStream] = {}
        self.revoked: list[StreamId] = []
        """The streams that it has not given back."""
        self.deadlines_ms: list[int] = []
        """The revokes that it received."""
        self.dropped: list[StreamId] = []
        self.over: borrower_events.Ended | borrower_events.Recreate | None = None
        self.wake_ms: int | None = None


class PlayedGroup:
    """A group with this many streams."""

    def __init__(self, protocol: str, *, streams: int, slicing: Slicing | None = None) -> None:
        self.protocol = protocol
        self.slicing = slicing
        """The number of shards, in its row and in the catalogue."""
        self.now_ms = 0
        self.rows = {
            stream(at): StoredStream(stream(at), Progress(10), 10, END, None)
            for at in range(streams)
        }
        self.versions: dict[bytes, int] = {}
        self.members: dict[bytes, PlayedMember] = {}
        self.concluded: list[int] = []
        self.stored: list[StreamRecord] = []
        """The contents of commits, in their order."""
        self.lease_ms = 6_000
        self.leader_epoch = 0
        self._posts: deque[Callable[[], None]] = deque()
        self.take_over()

    # The leader

    def take_over(self, *, restarted: bool = False, bans: tuple[Ban, ...] = ()) -> None:
        """Start a new leader, which knows only the rows; a daemon that restarted ends all
        members."""
        self.leader_epoch += 1
        if restarted:
            self.members.clear()
        sets = StreamSets() if self.protocol == "lease" else None
        self.leader = Leader(self.leader_epoch, stream_sets=sets)
        rows, versions = tuple(self.rows.values()), tuple(self.versions.items())
        known = tuple(SetVersion(*each) for each in versions)
        slicing = self.slicing
        self.feed(TookOver(self.now_ms, rows, restarted, known, bans=bans, slicing=slicing))

    def feed(self, given: LeaderInput) -> None:
        """Give the leader an input, and let everything happen that follows from it at once."""
        self._post(lambda: self._lead(given))

    def ask(self, *instructions: Instruction) -> list[int]:
        """Operations ask for these; returns the numbers that are concluded at once."""
        before = len(self.concluded)
        for instruction in instructions:
            self.feed(Instructed(instruction, self.now_ms))
        return self.concluded[before:]

    def _lead(self, given: LeaderInput) -> None:
        leader = self.leader
        for effect in step(leader, given)[1]:
            match effect:
                case Send(message):
                    self._posts.append(lambda message=message: self._say(message))  # type: ignore[misc]
                case Persist():
                    self._posts.append(lambda effect=effect: self._store(leader, effect))  # type: ignore[misc]
                case Concluded(number):
                    self.concluded.append(number)
                case _:
                    pass

    def _store(self, leader: Leader, persist: Persist) -> None:
        if leader is not self.leader:
            return
        self.stored += persist.records
        for record in persist.records:
            row = replace(
                self.rows[record.stream],
                progress=record.progress,
                frontier=record.frontier,
                finished=record.finished,
                marked_below=record.marked_below,
            )
            if record.grant is not None:
                row = replace(
                    row,
                    grant_epoch=record.grant.grant_epoch,
                    session_id=record.grant.session_id,
                    borrower_id=record.grant.borrower_id,
                    pinned_session_id=record.grant.pinned_session_id,
                )
            self.rows[record.stream] = row
        for each in persist.versions:
            if each.version is None:
                self.versions.pop(each.session_id, None)
            else:
                self.versions[each.session_id] = each.version
        ends = tuple((each, END) for each in persist.measure)
        self._lead(Committed(persist.commit_id, self.now_ms, ends))

    # Its members

    def join(self, *names: bytes, session: bytes | None = None, by_shard: bool = False) -> None:
        """Start borrowers, and let them get their shares."""
        for name in names:
            self.begin(name, session=session, by_shard=by_shard)
        self.pass_ms(250)

    def begin(
        self,
        name: bytes,
        *,
        session: bytes | None = None,
        subscription: int = 0,
        by_shard: bool = False,
    ) -> None:
        """A borrower connects to the leader; if only its name is given, it gets a session of its
        own."""
        session_id = session or session_of(name)
        self.members[name] = PlayedMember(self, name, session_id, subscription, by_shard=by_shard)
        self.tell(name, borrower_events.Started(self.now_ms))

    def tell(self, name: bytes, given: borrower_events.BorrowerInput) -> None:
        """Give a borrower an input of its session."""
        self._post(lambda: self._act(name, given))

    def leave(self, name: bytes) -> None:
        """Its client leaves the subscription."""
        self.tell(name, borrower_events.Unsubscribed(self.now_ms))
        held = [self.report(name, each) for each in self.members[name].granted]
        self.tell(name, borrower_events.Reported(tuple(held), self.now_ms, final=True))

    def close(self, name: bytes) -> None:
        """Its client's connection is lost."""
        session_id = self.members[name].machine.session_id
        self.tell(name, borrower_events.Disconnected(self.now_ms))
        self.feed(SessionClosed(session_id, self.now_ms))

    def give_back(self, name: bytes) -> None:
        """Its user settles the records in flight."""
        member = self.members[name]
        member.holding = False
        revoked = [each for each in member.revoked if each in member.granted]
        member.revoked.clear()
        for each in revoked:
            reports = (self.report(name, each),)
            self.tell(name, borrower_events.Reported(reports, self.now_ms, final=True))

    def report(self, name: bytes, at: StreamId, *, floor: int = 10) -> StreamReport:
        """The state of its grant."""
        epoch = self.members[name].granted[at].grant_epoch
        return StreamReport(at, epoch, Progress(floor), floor, sent=floor)

    def _say(self, message: ToBorrower) -> None:
        member = self.members.get(message.borrower_id)
        if member is not None and not member.frozen:
            self._act(message.borrower_id, borrower_events.Received(message, self.now_ms))

    def _act(self, name: bytes, given: borrower_events.BorrowerInput) -> None:
        member = self.members[name]
        machine = member.machine
        if isinstance(machine, LeaseBorrower):
            effects = lease_machine.step(machine, given)[1]
        else:
            effects = borrow_machine.step(machine, given)[1]
        for effect in effects:
            self._carry_out(name, member, effect)

    def _carry_out(
        self, name: bytes, member: PlayedMember, effect: borrower_events.BorrowerEffect
    ) -> None:
        match effect:
            case borrower_events.SendToRegistry(said) | borrower_events.SendToLeader(said):
                received = Received(said, self.now_ms)
                self._posts.append(lambda: self._lead(received))
            case borrower_events.WakeAt(at_ms):
                member.wake_ms = at_ms
            case borrower_events.InstallStream(granted):
                member.granted[granted.stream] = granted
                self.installed(member, granted)
            case borrower_events.RevokeStream(revoked, _, deadline_ms):
                member.deadlines_ms.append(deadline_ms)
                if member.holding:
                    member.revoked.append(revoked)
                else:
                    last = (self.report(name, revoked),)
                    final = borrower_events.Reported(last, self.now_ms, final=True)
                    self._posts.append(lambda: self._act(name, final))
            case borrower_events.DropStream(dropped):
                self.dropping(member, dropped)
                member.granted.pop(dropped, None)
                member.dropped.append(dropped)
            case borrower_events.Ended() | borrower_events.Recreate():
                member.over = effect
            case _:
                pass

    def installed(self, member: PlayedMember, granted: GrantedStream) -> None:
        """The member gets a stream; a test may look."""

    def dropping(self, member: PlayedMember, dropped: StreamId) -> None:
        """The member loses a stream; a test may look."""

    # Time

    def pass_ms(self, duration_ms: int) -> None:
        """Let time pass; due timers fire."""
        ends_ms = self.now_ms + duration_ms
        while (at_ms := self._next_ms()) is not None and at_ms <= ends_ms:
            self.now_ms = max(at_ms, self.now_ms)
            if (self.leader.timers.next_ms() or self.now_ms + 1) <= self.now_ms:
                self.feed(Ticked(self.now_ms))
            for name, member in list(self.members.items()):
                if member.wake_ms is not None and member.wake_ms <= self.now_ms:
                    member.wake_ms = None
                    if not member.frozen:
                        self.tell(name, borrower_events.Ticked(self.now_ms))
        self.now_ms = ends_ms

    def _next_ms(self) -> int | None:
        times = [self.leader.timers.next_ms()]
        times += [each.wake_ms for each in self.members.values() if not each.over]
        return min((at_ms for at_ms in times if at_ms is not None), default=None)

    def _post(self, act: Callable[[], None]) -> None:
        self._posts.append(act)
        while self._posts:
            self._posts.popleft()()

    # What there is

    def holder(self, at: int) -> bytes | None:
        """Who holds the stream."""
        lent = self.leader.streams[stream(at)]
        return lent.holder if lent.state in HELD else None

    def held(self, name: bytes) -> list[int]:
        """The streams that are granted to the borrower."""
        return sorted(
            lent.stream.partition
            for lent in self.leader.streams.values()
            if lent.state is StreamState.GRANTED and lent.holder == name
        )

    def shares(self, *names: bytes) -> list[int]:
        """How many streams each of them holds."""
        return [len(self.held(name)) for name in names]

    def pinned_to(self, at: int) -> bytes | None:
        """The session that the stored row pins the stream to."""
        return self.rows[stream(at)].pinned_session_id

    def planned(self, moves_max: int = 1_000) -> Iterable[tuple[int, bytes | None, bytes]]:
        """The plan of a rebalance, by partitions."""
        found = planned_hand_overs(self.leader, moves_max)
        return [(move.stream.partition, move.giver, move.taker) for move in found]

    def gone(self, at: int) -> None:
        """Remove the stream's topic."""
        self.feed(StreamsChanged(self.now_ms, gone=(stream(at),)))

    def rewind(self, number: int, at: int) -> CursorMove:
        """Move the stream's cursor to its beginning."""
        return CursorMove(stream(at), number, ((0, END),), ())
