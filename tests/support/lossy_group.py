"""Leader and borrowers together, joined by a transport that loses, doubles and reorders.

No event loop and no clock but a simulated one: every run is repeated by its seed. Where records
fail, each stream is a lane: its holder moves them to queues, as a session does.
"""

import heapq
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from dss_core.ids import StreamId
from dss_core.lane import DEAD, MAIN, RETRY
from dss_core.progress import Progress, complement
from dssd.machines.borrower import borrow_machine, lease_machine
from dssd.machines.borrower import events as borrower_events
from dssd.machines.borrower.state import Borrower, LeaseBorrower
from dssd.machines.leader import events as leader_events
from dssd.machines.leader import machine as leader_machine
from dssd.machines.leader.lent_stream import HELD
from dssd.machines.leader.state import Leader, LeaderState
from dssd.machines.leader.stream_set_state import StreamSets
from dssd.machines.leader.timing import LeaderTiming
from dssd.machines.messages import GrantedStream, StreamReport, ToBorrower, ToLeader
from dssd.machines.queues import Queues, QueueState

LEASE_MS = 6_000
RECORDS = 40
COMMIT_MS = 3


ATTEMPTS_MAX = 3


class Entry(NamedTuple):
    """Of a queue: what it was made of, which record it is, and how often that failed."""

    level: int
    source: int
    origin: int
    attempt: int


@dataclass
class Reading:
    """A session's view of one grant: it hands out and acknowledges one record after another."""

    granted: GrantedStream
    at: int
    progress: Progress
    queues: Queues = ()
    finishing: bool = False
    told: bool = False

    def ack(self, level: int, offset: int) -> None:
        """A record of a level is done."""
        done = ((offset, offset + 1),)
        if level == MAIN:
            self.progress = self.progress.with_acked(done)
        else:
            queue = self.queues[level - 1]
            self.note(level, replace(queue, progress=queue.progress.with_acked(done)))

    def note(self, level: int, queue: QueueState) -> None:
        """A queue of the lane stands otherwise."""
        self.queues = tuple(
            queue if at == level else each for at, each in enumerate(self.queues, RETRY)
        )


@dataclass
class Stored:
    """What is durable of one stream."""

    progress: Progress = field(default_factory=lambda: Progress(0))
    frontier: int = 0
    grant: leader_events.GrantRecord | None = None
    queues: dict[StreamId, QueueState] = field(default_factory=dict)


class World:
    """A group of a few streams, its leader, its members, and the network between them."""

    def __init__(
        self,
        seed: int,
        protocol: str,
        *,
        streams: int,
        fault_rate: float,
        failing_rate: float = 0.0,
        dying_rate: float = 0.0,
    ) -> None:
        self.failing_rate = failing_rate
        """Of records that are handed out; where there are any, streams are lanes."""
        self.dying_rate = dying_rate
        """Of holders, between an entry and the report of it."""
        self.logs: dict[StreamId, list[Entry]] = {}
        """Of queues."""
        self.protocol = protocol
        self.versions: dict[bytes, int] = {}
        self.random = random.Random(seed)
        self.fault_rate = fault_rate
        self.now_ms = 0
        self.events: list[tuple[int, int, Callable[[], None]]] = []
        self.made = 0
        self.streams = [StreamId(1, at) for at in range(streams)]
        self.stored = {stream: Stored() for stream in self.streams}
        if failing_rate:
            self.make_queues()
        self.leader_epoch = 0
        self.leader: Leader | None = None
        self.members: dict[bytes, Member] = {}
        self.handed_out: Counter[tuple[StreamId, int]] = Counter()
        self.unmarked: set[tuple[StreamId, int]] = set()
        self.messages = 0
        self.incarnations: Counter[str] = Counter()

    def make_queues(self) -> None:
        for stream in self.streams:
            for queue in (StreamId(2, stream.partition), StreamId(3, stream.partition)):
                self.stored[stream].queues[queue] = QueueState(queue)
                self.logs[queue] = []

    def held(self) -> None:
        """Nobody holds a stream: the group gets queues, or loses those that are empty."""
        readings = [each for member in self.members.values() for each in member.reading.values()]
        assert not [each for each in readings if not each.finishing], "somebody hands out"
        if not self.logs:
            self.make_queues()
            self.failing_rate = 0.3
        elif self.are_queues_empty():
            self.logs.clear()
            for stored in self.stored.values():
                stored.queues.clear()
        lanes = tuple((at, tuple(each.queues.values()), None) for at, each in self.stored.items())
        self.feed(leader_events.LendAgain(self.now_ms, lanes))

    def are_queues_empty(self) -> bool:
        queues = (queue for stored in self.stored.values() for queue in stored.queues.values())
        return all(each.progress.floor == len(self.logs[each.stream]) for each in queues)

    def at(self, delay_ms: int, act: Callable[[], None]) -> None:
        self.made += 1
        heapq.heappush(self.events, (self.now_ms + delay_ms, self.made, act))

    def run_until(self, reached: Callable[[], bool], *, within_ms: int) -> None:
        ends_ms = self.now_ms + within_ms
        while not reached():
            assert self.events, "nothing is left to happen"
            at_ms, _, act = heapq.heappop(self.events)
            assert at_ms <= ends_ms, "it did not come about in time"
            self.now_ms = at_ms
            act()
            self.check()

    def run_for(self, duration_ms: int) -> None:
        done: list[bool] = []
        self.at(duration_ms, lambda: done.append(True))
        self.run_until(lambda: bool(done), within_ms=duration_ms)

    def carry(self, deliver: Callable[[], None]) -> None:
        """20 % of messages are lost, 20 % come twice, 20 % come late, each on its own."""
        self.messages += 1
        if self.random.random() < self.fault_rate:
            return
        for _ in range(1 + (self.random.random() < self.fault_rate)):
            late = self.random.random() < self.fault_rate
            self.at(self.random.randint(1, 400 if late else 5), deliver)

    # The leader's side

    def start_leader(self, *, restarted: bool = False) -> None:
        self.leader_epoch += 1
        leases = StreamSets() if self.protocol == "lease" else None
        timing = LeaderTiming(lease_ms=LEASE_MS)
        self.leader = Leader(self.leader_epoch, timing=timing, stream_sets=leases)
        streams = tuple(self.stored_stream(stream) for stream in self.streams)
        versions = tuple(leader_events.SetVersion(*each) for each in self.versions.items())
        self.feed(leader_events.TookOver(self.now_ms, streams, restarted, versions))

    def stored_stream(self, stream: StreamId) -> leader_events.StoredStream:
        stored = self.stored[stream]
        base = leader_events.StoredStream(
            stream,
            stored.progress,
            stored.frontier,
            RECORDS,
            None,
            queues=tuple(stored.queues.values()),
        )
        if stored.grant is None:
            return base
        return replace(
            base,
            grant_epoch=stored.grant.grant_epoch,
            session_id=stored.grant.session_id,
            borrower_id=stored.grant.borrower_id,
        )

    def to_leader(self, message: ToLeader) -> None:
        def deliver() -> None:
            if self.leader is not None:
                self.feed(leader_events.Received(message, self.now_ms))

        self.carry(deliver)

    def feed(self, given: leader_events.LeaderInput) -> None:
        assert self.leader is not None
        leading_now = self.leader
        for effect in leader_machine.step(leading_now, given)[1]:
            match effect:
                case leader_events.Send(message):
                    self.to_borrower(message)
                case leader_events.Persist():
                    self.at(COMMIT_MS, partial(self.commit, leading_now, effect))
                case leader_events.WakeAt(at_ms):
                    self.at(max(at_ms - self.now_ms, 0), lambda: self.tick_leader(leading_now))
                case leader_events.Held():
                    self.held()
                case leader_events.Stop():
                    self.leader = None

    def tick_leader(self, ticked: Leader) -> None:
        if self.leader is ticked:
            self.feed(leader_events.Ticked(self.now_ms))

    def commit(self, committer: Leader, persist: leader_events.Persist) -> None:
        if self.leader is not committer:
            return
        for record in persist.records:
            stored = self.stored[record.stream]
            assert record.progress.merged(stored.progress) == record.progress, "progress fell"
            stored.progress, stored.frontier = record.progress, record.frontier
            for queue in record.queues:
                known = stored.queues[queue.stream]
                assert queue.merged(known) == queue != known, "a queue fell, or did not change"
                stored.queues[queue.stream] = queue
            if record.grant is not None:
                stored.grant = record.grant
        for each in persist.versions:
            if each.version is None:
                del self.versions[each.session_id]
            else:
                assert each.version > self.versions.get(each.session_id, 0), "a version twice"
                self.versions[each.session_id] = each.version
        ends = tuple((stream, RECORDS) for stream in persist.measure)
        self.feed(leader_events.Committed(persist.commit_id, self.now_ms, ends))

    # The borrowers' side

    def to_borrower(self, message: ToBorrower) -> None:
        def deliver() -> None:
            member = self.members.get(message.borrower_id)
            if member is not None:
                member.feed(borrower_events.Received(message, self.now_ms))

        self.carry(deliver)

    def join(self, name: str) -> "Member":
        return Member(self, name)

    def replace(self, name: str) -> None:
        """Another member, under a name of its own."""
        Member(self, f"{name}'")

    # What must hold

    def is_settled(self) -> bool:
        """Every record was acknowledged, durably, or is dead."""
        return all(
            stored.progress.floor == RECORDS and self.is_retried(stored)
            for stored in self.stored.values()
        )

    def is_retried(self, stored: Stored) -> bool:
        """Nothing waits in a retry queue, and all that queues hold is known."""
        queues = tuple(stored.queues.values())
        waits = bool(queues) and queues[0].progress.floor < len(self.logs[queues[0].stream])
        return not waits and all(each.applied_end == len(self.logs[each.stream]) for each in queues)

    def shares(self) -> dict[str, int]:
        return {
            member.name: len(member.borrower.streams)
            for member in self.members.values()
            if not member.ended
        }

    def check(self) -> None:
        holders: Counter[StreamId] = Counter()
        for member in set(self.members.values()):
            if not member.ended and not member.suspended:
                # One that gave a stream back waits to hear that it was taken.
                reads = [at for at, reading in member.reading.items() if not reading.finishing]
                holders.update(reads)
        assert not [stream for stream, count in holders.items() if count > 1], "two holders"
        if self.leader is None or self.leader.state is not LeaderState.LEADING:
            return
        held = {
            stream: lent.holder
            for stream, lent in self.leader.streams.items()
            if lent.state in HELD
        }
        books = {
            stream: member.borrower_id
            for member in self.leader.members.values()
            for stream in member.streams
        }
        assert held == books


class Member:
    """A session with one subscription: an agent, its borrower, and a slow user."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.ended = False
        self.suspended = False
        self.reading: dict[StreamId, Reading] = {}
        self.begin()

    def begin(self) -> None:
        self.world.incarnations[self.name] += 1
        borrower_id = f"{self.name}.{self.world.incarnations[self.name]}".encode()
        kind = LeaseBorrower if self.world.protocol == "lease" else Borrower
        self.borrower: Borrower | LeaseBorrower = kind(
            borrower_id, self.name.encode(), self.name, LEASE_MS
        )
        self.world.members[borrower_id] = self
        self.suspended = False
        self.feed(borrower_events.Started(self.world.now_ms))

    def feed(self, given: borrower_events.BorrowerInput) -> None:
        borrower = self.borrower
        if isinstance(given, borrower_events.Received):
            assert given.message.borrower_id.startswith(self.name.encode())
        if isinstance(borrower, LeaseBorrower):
            effects = lease_machine.step(borrower, given)[1]
        else:
            effects = borrow_machine.step(borrower, given)[1]
        for effect in effects:
            self.carry_out(effect, borrower)

    def carry_out(
        self, effect: borrower_events.BorrowerEffect, borrower: Borrower | LeaseBorrower
    ) -> None:
        world = self.world
        match effect:
            case borrower_events.SendToLeader(message):
                world.to_leader(message)
            case borrower_events.SendToRegistry(message):
                world.to_leader(message)
            case borrower_events.InstallStream(granted):
                assert granted.stream not in self.reading
                self.open_lane(granted)
                world.at(world.random.randint(1, 30), lambda: self.read(granted))
            case borrower_events.RevokeStream(stream, _, _):
                self.reading[stream].finishing = True
                self.report(self.reading[stream])
            case borrower_events.DropStream(stream, grant_epoch, _):
                assert self.reading.pop(stream).granted.grant_epoch == grant_epoch
            case borrower_events.WakeAt(at_ms):
                world.at(max(at_ms - world.now_ms, 0), lambda: self.tick(borrower))
            case _:
                self.obey(effect)

    def open_lane(self, granted: GrantedStream) -> None:
        """Take in what the queues hold that nobody reported."""
        reading = Reading(granted, granted.progress.floor, granted.progress, granted.queues)
        self.reading[granted.stream] = reading
        for level, queue in enumerate(granted.queues, RETRY):
            entries = self.world.logs[queue.stream]
            for entry in entries[queue.applied_end :]:
                reading.ack(entry.level, entry.source)
            reading.note(level, replace(reading.queues[level - 1], applied_end=len(entries)))

    def obey(self, effect: borrower_events.BorrowerEffect) -> None:
        match effect:
            case borrower_events.SuspendDelivery():
                self.suspended = True
            case borrower_events.ResumeDelivery():
                self.suspended = False
            case borrower_events.Recreate():
                self.begin()
            case borrower_events.Ended():
                self.ended = True

    def die(self) -> None:
        """Without a word, as a process that is killed."""
        self.ended = True
        self.reading.clear()
        own = [key for key, member in self.world.members.items() if member is self]
        for borrower_id in own:
            del self.world.members[borrower_id]
        self.borrower = Borrower(b"nobody", b"nobody", "nobody", LEASE_MS)

    def tick(self, ticked: Borrower | LeaseBorrower) -> None:
        if self.borrower is ticked:
            self.feed(borrower_events.Ticked(self.world.now_ms))

    def read(self, granted: GrantedStream) -> None:
        """Hand out one record, acknowledge it, and so on until the grant ends."""
        reading = self.reading.get(granted.stream)
        if reading is None or reading.granted is not granted or reading.finishing:
            return
        if reading.queues != granted.queues and not reading.told:
            self.report(reading)
        if not self.suspended and reading.at < RECORDS:
            self.hand_out(reading)
        elif not self.suspended:
            self.hand_out_again(reading)
        if reading.at < RECORDS or self.waiting(reading):
            self.world.at(self.world.random.randint(1, 30), lambda: self.read(granted))

    def waiting(self, reading: Reading) -> list[int]:
        """The entries of the retry queue that are not done."""
        if not reading.queues:
            return []
        queue = reading.queues[RETRY - 1]
        progress, end = queue.progress, len(self.world.logs[queue.stream])
        open_ = complement(progress.ranges, progress.floor, end)
        return [offset for start, stop in open_ for offset in range(start, stop)]

    def hand_out_again(self, reading: Reading) -> None:
        """Hand out the first entry that waits."""
        for offset in self.waiting(reading)[:1]:
            entry = self.world.logs[reading.queues[RETRY - 1].stream][offset]
            self.settle(reading, Entry(RETRY, offset, entry.origin, entry.attempt))

    def hand_out(self, reading: Reading) -> None:
        stream, offset = reading.granted.stream, reading.at
        record = (stream, offset)
        if reading.progress.acked_in(offset, offset + 1):
            reading.at += 1
            return
        marked = offset < max(reading.granted.frontier, reading.granted.suspect_end)
        if self.world.handed_out[record] and not marked:
            self.world.unmarked.add(record)
        self.world.handed_out[record] += 1
        reading.at += 1
        self.settle(reading, Entry(MAIN, offset, offset, 0))

    def settle(self, reading: Reading, tried: Entry) -> None:
        """Acknowledge a record, or move it to a queue; who does that may die in between."""
        world = self.world
        if reading.queues and world.random.random() < world.failing_rate:
            entry = tried._replace(attempt=tried.attempt + 1)
            level = DEAD if entry.attempt == ATTEMPTS_MAX else RETRY
            queue = reading.queues[level - 1]
            world.logs[queue.stream].append(entry)
            if world.random.random() < world.dying_rate:
                self.be_replaced()
                return
            reading.note(level, replace(queue, applied_end=queue.applied_end + 1))
        reading.ack(tried.level, tried.source)
        self.report(reading)

    def be_replaced(self) -> None:
        """Die, and have another come."""
        world, session = self.world, self.name.encode()
        self.die()

        def close() -> None:
            if world.leader is not None:
                world.feed(leader_events.SessionClosed(session, world.now_ms))

        world.at(20, close)
        world.at(50, partial(world.replace, self.name))

    def report(self, reading: Reading) -> None:
        reading.told = True
        report = StreamReport(
            reading.granted.stream,
            reading.granted.grant_epoch,
            reading.progress,
            max(reading.at, reading.granted.frontier),
            sent=reading.at,
            queues=reading.queues,
        )
        final = reading.finishing
        self.feed(borrower_events.Reported((report,), self.world.now_ms, final=final))
