"""Leader and borrowers together, joined by a transport that loses, doubles and reorders.

No event loop and no clock but a simulated one: every run is repeated by its seed, which the
parameter of a failing test names.
"""

import heapq
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import pytest

from dss_core.ids import StreamId
from dss_core.progress import Progress
from dssd.machines.borrower import borrow_machine, lease_machine
from dssd.machines.borrower import events as borrower_events
from dssd.machines.borrower.state import Borrower, LeaseBorrower
from dssd.machines.leader import events as leader_events
from dssd.machines.leader import machine as leader_machine
from dssd.machines.leader.lent_stream import HELD, StreamState
from dssd.machines.leader.state import Leader, LeaderState
from dssd.machines.leader.stream_set_state import StreamSets
from dssd.machines.leader.timing import LeaderTiming
from dssd.machines.messages import GrantedStream, StreamReport, ToBorrower, ToLeader
from support.proof_share import share

LEASE_MS = 6_000
RECORDS = 40
COMMIT_MS = 3


@dataclass
class Reading:
    """A session's view of one grant: it hands out and acknowledges one record after another."""

    granted: GrantedStream
    at: int
    progress: Progress
    finishing: bool = False


@dataclass
class Stored:
    """What is durable of one stream."""

    progress: Progress = field(default_factory=lambda: Progress(0))
    frontier: int = 0
    grant: leader_events.GrantRecord | None = None


class World:
    """A group of a few streams, its leader, its members, and the network between them."""

    def __init__(self, seed: int, protocol: str, *, streams: int, fault_rate: float) -> None:
        self.protocol = protocol
        self.versions: dict[bytes, int] = {}
        self.random = random.Random(seed)
        self.fault_rate = fault_rate
        self.now_ms = 0
        self.events: list[tuple[int, int, Callable[[], None]]] = []
        self.made = 0
        self.streams = [StreamId(1, at) for at in range(streams)]
        self.stored = {stream: Stored() for stream in self.streams}
        self.leader_epoch = 0
        self.leader: Leader | None = None
        self.members: dict[bytes, Member] = {}
        self.handed_out: Counter[tuple[StreamId, int]] = Counter()
        self.unmarked: set[tuple[StreamId, int]] = set()
        self.messages = 0
        self.incarnations: Counter[str] = Counter()

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
        base = leader_events.StoredStream(stream, stored.progress, stored.frontier, RECORDS, None)
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

    # What must hold

    def is_settled(self) -> bool:
        """Every record was acknowledged, durably."""
        return all(stored.progress.floor == RECORDS for stored in self.stored.values())

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
                self.reading[granted.stream] = Reading(
                    granted, granted.progress.floor, granted.progress
                )
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
        if not self.suspended and reading.at < RECORDS:
            self.hand_out(reading)
        if reading.at < RECORDS:
            self.world.at(self.world.random.randint(1, 30), lambda: self.read(granted))

    def hand_out(self, reading: Reading) -> None:
        stream, offset = reading.granted.stream, reading.at
        record = (stream, offset)
        marked = offset < max(reading.granted.frontier, reading.granted.suspect_end)
        if self.world.handed_out[record] and not marked:
            self.world.unmarked.add(record)
        self.world.handed_out[record] += 1
        reading.at += 1
        reading.progress = reading.progress.with_acked(((offset, offset + 1),))
        self.report(reading)

    def report(self, reading: Reading) -> None:
        report = StreamReport(
            reading.granted.stream,
            reading.granted.grant_epoch,
            reading.progress,
            max(reading.at, reading.granted.frontier),
            sent=reading.at,
        )
        final = reading.finishing
        self.feed(borrower_events.Reported((report,), self.world.now_ms, final=final))


SEEDS = range(share(4, 30))
"""`dss_sim.groups` has the same machines under far more faults; here a run is one sentence."""
PROTOCOLS = ("borrow", "lease")


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("seed", SEEDS)
def test_two_members_settle_every_record_over_a_lossy_network(seed: int, protocol: str) -> None:
    world = World(seed, protocol, streams=8, fault_rate=0.2)
    world.start_leader()
    world.join("ann")
    world.run_for(600)
    world.join("bob")
    world.run_until(world.is_settled, within_ms=120_000)
    assert {record for record, count in world.handed_out.items() if count} == {
        (stream, offset) for stream in world.streams for offset in range(RECORDS)
    }
    assert world.unmarked == set()


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("seed", SEEDS)
def test_every_record_comes_once_where_only_the_network_is_slow(seed: int, protocol: str) -> None:
    world = World(seed, protocol, streams=6, fault_rate=0.0)
    world.start_leader()
    world.join("ann")
    world.run_for(400)
    world.join("bob")
    world.run_until(world.is_settled, within_ms=10_000)
    assert max(world.handed_out.values()) == 1


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("seed", SEEDS)
def test_members_end_up_balanced_and_then_nothing_but_pings_is_said(
    seed: int, protocol: str
) -> None:
    world = World(seed, protocol, streams=7, fault_rate=0.2)
    world.start_leader()
    world.join("ann")
    world.join("bob")
    world.run_until(world.is_settled, within_ms=120_000)
    world.fault_rate = 0.0
    world.run_for(3 * LEASE_MS)
    shares = world.shares()
    assert sum(shares.values()) == 7
    assert max(shares.values()) - min(shares.values()) <= 1
    before = world.messages
    world.run_for(LEASE_MS)
    pings_each_way = 2 * 4 * len(shares)
    assert world.messages - before <= pings_each_way + 4


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_member_that_dies_is_replaced_and_what_it_handed_out_is_marked(
    seed: int, protocol: str
) -> None:
    world = World(seed, protocol, streams=6, fault_rate=0.2)
    world.start_leader()
    dead = world.join("ann")
    world.join("bob")
    world.run_for(700)
    dead.die()
    world.feed(leader_events.SessionClosed(b"ann", world.now_ms))
    world.run_until(world.is_settled, within_ms=120_000)
    assert world.unmarked == set()


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_new_leader_adopts_members_and_nothing_is_lost_or_unmarked(
    seed: int, protocol: str
) -> None:
    world = World(seed, protocol, streams=6, fault_rate=0.2)
    world.start_leader()
    world.join("ann")
    world.join("bob")
    world.run_for(900)
    world.leader = None
    world.run_for(200)
    world.start_leader()
    world.run_until(world.is_settled, within_ms=120_000)
    assert world.unmarked == set()


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("seed", SEEDS)
def test_after_a_restart_sessions_get_their_streams_back_and_doubles_are_marked(
    seed: int, protocol: str
) -> None:
    world = World(seed, protocol, streams=6, fault_rate=0.2)
    world.start_leader()
    for name in ("ann", "bob"):
        world.join(name)
    world.run_for(600 + seed % 200)
    for member in tuple(world.members.values()):
        member.die()
    world.leader = None
    world.events.clear()
    world.start_leader(restarted=True)
    for name in ("ann", "bob"):
        world.join(name)
    world.run_until(world.is_settled, within_ms=120_000)
    assert world.unmarked == set()


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("seed", SEEDS)
def test_one_leaves_while_the_other_goes_on(seed: int, protocol: str) -> None:
    world = World(seed, protocol, streams=6, fault_rate=0.2)
    world.start_leader()
    leaver = world.join("ann")
    world.join("bob")
    world.run_for(800)
    leaver.feed(borrower_events.Unsubscribed(world.now_ms))
    world.run_until(lambda: leaver.ended, within_ms=5_100)
    world.run_until(world.is_settled, within_ms=120_000)
    assert world.unmarked == set()
    assert world.leader is not None
    finished = [lent.state for lent in world.leader.streams.values()]
    assert StreamState.REVOKING not in finished
