"""What a step of a leader costs, by how many streams and members its group has.

The real machine leads a group alone: borrowers answer at once, commits are durable at once. Costs
are CPU time of the thread, in µs, so other people's work on the machine does not count; garbage is
collected as seldom as the daemon has it, and what that costs is in the longest steps.
"""

import gc
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import log2
from statistics import median
from time import thread_time_ns

from dss_core.ids import StreamId
from dss_core.progress import Progress
from dss_sim.garbage import frozen_heap
from dssd.machines.leader.events import (
    Committed,
    LeaderInput,
    Persist,
    Received,
    Send,
    SessionClosed,
    StoredStream,
    Ticked,
    TookOver,
    WakeAt,
)
from dssd.machines.leader.machine import step
from dssd.machines.leader.slicing import Slicing
from dssd.machines.leader.state import Leader
from dssd.machines.messages import (
    Grant,
    LeaderWanted,
    Ping,
    Revoke,
    Revoked,
    RevokeFinished,
    StreamReport,
    ToBorrower,
    UpdateProgress,
)
from dssd.process import COLLECT_AFTER_OBJECTS, COLLECT_ALL_AFTER, COLLECT_MIDDLE_AFTER

STREAMS = (64, 256, 1_024, 4_096)
MEMBERS = (2, 16, 128, 1_024)
EPOCH = 1
NS_PER_US = 1_000
PINGS = 50
"""Of a round."""


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU time of one kind of step, in µs."""

    median_us: float
    max_us: float


TOOK_OVER = "took over"
FIRST_SHARE = "first share"
"""The longest step while streams are lent for the first time."""
JOIN = "a join, all"
"""Every step that follows from one join until the group is quiet again."""
REBALANCE = "rebalance"
"""Of those steps, the ones that compute shares and begin moves; together."""
LONGEST = "its longest"
"""Of all those steps."""
PING = "ping"
REPORT = "report"
COMMIT = "commit"
"""A commit's answer, which begins the next commit."""
CLOSE = "close"
"""The session that closed has no borrower here."""
DEATH = "death"
"""The longest step after a session with a borrower closed."""
ALL_DEAD = "all dead"
"""The longest step when all leases end at once."""


@dataclass(frozen=True, slots=True)
class Costs:
    """A group of so many streams and members."""

    streams: int
    members: int
    steps: Mapping[str, Cost]
    """By what the step is about."""

    @property
    def rebalance_ns_per_s_log_s(self) -> float:
        """Must not grow with the streams."""
        s_log_s = self.streams * log2(max(self.streams, 2))
        return self.steps[REBALANCE].median_us * NS_PER_US / s_log_s


class Group:
    """A leader, and borrowers that answer whatever it says."""

    def __init__(self, streams: int, slicing: Slicing | None = None) -> None:
        self.leader = Leader(EPOCH)
        self.now_ms = 0
        self.taken: list[tuple[type[LeaderInput], int]] = []
        """Steps since they were last looked at: input and cost in ns."""
        self._inbox: deque[ToBorrower | Persist] = deque()
        self._wake_ms: int | None = None
        stored = tuple(
            StoredStream(StreamId(1, at), Progress(0), 0, 0, None) for at in range(streams)
        )
        self.feed(TookOver(0, stored, restarted=False, slicing=slicing))

    def feed(self, given: LeaderInput) -> int:
        """Take one step; returns its cost in ns."""
        began_ns = thread_time_ns()
        effects = step(self.leader, given)[1]
        took_ns = thread_time_ns() - began_ns
        self.taken.append((type(given), took_ns))
        for effect in effects:
            match effect:
                case Send(message):
                    self._inbox.append(message)
                case Persist():
                    self._inbox.append(effect)
                case WakeAt(at_ms):
                    self._wake_ms = at_ms
                case _:
                    pass
        return took_ns

    def costs(self, kind: type[LeaderInput] | None = None) -> list[int]:
        """What the steps cost that were taken since the last call, in ns; of one input or all."""
        taken, self.taken = self.taken, []
        return [cost for given, cost in taken if kind is None or given is kind]

    def join(self, member: int) -> None:
        """A borrower asks to be a member."""
        name = name_of(member)
        self.feed(Received(LeaderWanted(name, 0, name, f"c{member}"), self.now_ms))

    def settle(self) -> None:
        """Answer everything, and let gathering intervals pass, until no message is left."""
        ends_ms = self.now_ms + 2 * self.leader.timing.gather_ms
        while True:
            while self._inbox:
                self._answer(self._inbox.popleft())
            if self._wake_ms is None or self._wake_ms > ends_ms:
                return
            self.now_ms = max(self._wake_ms, self.now_ms)
            self._wake_ms = None
            self.feed(Ticked(self.now_ms))

    def report(self, stream: StreamId, floor: int) -> int:
        """The holder of a stream reports progress; returns the cost of the step in ns."""
        lent = self.leader.streams[stream]
        assert lent.holder is not None
        report = StreamReport(stream, lent.grant_epoch, Progress(floor), floor)
        return self.feed(Received(UpdateProgress(lent.holder, EPOCH, (report,)), self.now_ms))

    def ping(self, member: int) -> int:
        """A member pings; returns the cost of the step in ns."""
        return self.feed(Received(Ping(name_of(member), EPOCH, self.now_ms), self.now_ms))

    def _answer(self, said: ToBorrower | Persist) -> None:
        match said:
            case Persist(commit_id):
                self.feed(Committed(commit_id, self.now_ms))
            case Grant(borrower_id, _, streams):
                reports = tuple(
                    StreamReport(each.stream, each.grant_epoch, each.progress, each.frontier)
                    for each in streams
                )
                self.feed(Received(UpdateProgress(borrower_id, EPOCH, reports), self.now_ms))
            case Revoke(borrower_id, _, stream, grant_epoch):
                final = StreamReport(stream, grant_epoch, Progress(0), 0, sent=0)
                update = UpdateProgress(borrower_id, EPOCH, (final,), final=True)
                self.feed(Received(update, self.now_ms))
            case Revoked(borrower_id, _, stream, grant_epoch):
                finished = RevokeFinished(borrower_id, EPOCH, stream, grant_epoch)
                self.feed(Received(finished, self.now_ms))
            case _:
                pass


def name_of(member: int) -> bytes:
    """Borrower and session of a member."""
    return member.to_bytes(16)


def measured(streams: int, members: int, rounds: int) -> Costs:
    """What the steps of a group cost, over so many rounds."""
    spent: defaultdict[str, list[int]] = defaultdict(list)
    with _collecting_seldom():
        for _ in range(rounds):
            _measure_round(streams, members, spent)
    steps = {
        kind: Cost(median(costs) / NS_PER_US, max(costs) / NS_PER_US)
        for kind, costs in spent.items()
    }
    return Costs(streams, members, steps)


@contextmanager
def _collecting_seldom() -> Iterator[None]:
    before = gc.get_threshold()
    with frozen_heap():
        gc.set_threshold(COLLECT_AFTER_OBJECTS, COLLECT_MIDDLE_AFTER, COLLECT_ALL_AFTER)
        try:
            yield
        finally:
            gc.set_threshold(*before)


def _measure_round(streams: int, members: int, spent: defaultdict[str, list[int]]) -> None:
    group = Group(streams)
    spent[TOOK_OVER] += group.costs()
    for member in range(members - 1):
        group.join(member)
    group.costs()
    group.settle()
    spent[FIRST_SHARE].append(max(group.costs()))
    group.join(members - 1)
    group.settle()
    joined = group.taken
    spent[JOIN].append(sum(cost for _, cost in joined))
    rebalances = group.costs(Ticked)
    spent[REBALANCE].append(sum(rebalances))
    spent[LONGEST].append(max(cost for _, cost in joined))
    spent[PING] += [group.ping(member) for member in range(min(members, PINGS))]
    spent[REPORT] += [group.report(stream, 1) for stream in group.leader.order]
    group.settle()
    spent[COMMIT].append(max(group.costs(Committed)))
    _measure_ends(group, members, spent)


def _measure_ends(group: Group, members: int, spent: defaultdict[str, list[int]]) -> None:
    spent[CLOSE].append(group.feed(SessionClosed(b"nobody's", group.now_ms)))
    group.costs()
    group.feed(SessionClosed(name_of(members - 1), group.now_ms))
    group.settle()
    spent[DEATH].append(max(group.costs()))
    group.now_ms += group.leader.timing.lease_ms
    while group.leader.members:
        group.feed(Ticked(group.now_ms))
    spent[ALL_DEAD].append(max(group.costs()))
