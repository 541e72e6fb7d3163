"""Rebalances of groups that are too large to be moved in one step."""

from collections import Counter

import pytest

from dss_core.ids import StreamId
from dss_core.progress import Progress
from dssd.limits import MOVES_A_STEP_MAX
from dssd.machines.leader.events import (
    Committed,
    LeaderInput,
    Persist,
    Received,
    Send,
    SessionClosed,
    StoredStream,
    StreamsChanged,
    Ticked,
    TookOver,
    WakeAt,
)
from dssd.machines.leader.lent_stream import HELD, StreamState
from dssd.machines.leader.machine import TIMERS_A_STEP_MAX, step
from dssd.machines.leader.state import Leader, view
from dssd.machines.leader.stream_acts import STREAMS_A_REBALANCE_MS
from dssd.machines.messages import (
    Grant,
    LeaderWanted,
    Ping,
    Revoke,
    Revoked,
    RevokeFinished,
    StreamReport,
    ToBorrower,
    ToLeader,
    UpdateProgress,
)

MANY = 3 * MOVES_A_STEP_MAX + 50
ANN, BOB, CAT = b"ann", b"bob", b"cat"
GATHER_MS = 200


class Crowd:
    """A leader of many streams whose borrowers answer when they are told to."""

    def __init__(self, *, streams: int = MANY, held_by: bytes | None = None) -> None:
        self.leader = Leader(1)
        self.now_ms = 0
        self.wake_ms: int | None = None
        self.inbox: list[ToBorrower | Persist] = []
        self.states: Counter[StreamState] = Counter()
        """As the last step left them; to count those of many streams takes longer than a step."""
        stored = tuple(
            StoredStream(StreamId(1, at), Progress(0), 0, 0, None, 1, held_by, held_by)
            for at in range(streams)
        )
        self.feed(TookOver(0, stored, restarted=True))

    def feed(self, given: LeaderInput) -> int:
        """Take a step; how many grants it began or streams it began to revoke."""
        before = self.states
        for effect in step(self.leader, given)[1]:
            match effect:
                case Send(message):
                    self.inbox.append(message)
                case Persist():
                    self.inbox.append(effect)
                case WakeAt(at_ms):
                    self.wake_ms = at_ms
        after = self.states = self.shares()
        return sum(abs(after[state] - before[state]) for state in (S.FREE, S.REVOKING))

    def shares(self) -> Counter[StreamState]:
        return Counter(lent.state for lent in self.leader.streams.values())

    def tell(self, message: ToLeader) -> None:
        self.feed(Received(message, self.now_ms))

    def join(self, name: bytes) -> None:
        self.tell(LeaderWanted(name, 0, name, name.decode()))

    def ring(self) -> int:
        """The next wake-up that was asked for; how many moves began in it."""
        assert self.wake_ms is not None
        self.now_ms = max(self.now_ms, self.wake_ms)
        self.wake_ms = None
        return self.feed(Ticked(self.now_ms))

    def settle(self, duration_ms: int = 1_000) -> None:
        """Answer everything, and let time pass."""
        ends_ms = self.now_ms + duration_ms
        while True:
            while self.inbox:
                self.answer(self.inbox.pop(0))
            if self.wake_ms is None or self.wake_ms > ends_ms:
                self.now_ms = ends_ms
                return
            self.ring()

    def begin(self) -> None:
        """Shares are computed, and the first portion of moves is begun."""
        while not self.ring():
            pass

    def answer(self, said: ToBorrower | Persist) -> None:
        match said:
            case Persist(commit_id, _, measure):
                ends = tuple((stream, 0) for stream in measure)
                self.feed(Committed(commit_id, self.now_ms, ends))
            case Grant(name, epoch, streams):
                for each in streams:
                    report = StreamReport(
                        each.stream, each.grant_epoch, each.progress, each.frontier
                    )
                    self.tell(UpdateProgress(name, epoch, (report,)))
            case Revoke(name, epoch, stream, grant_epoch):
                final = StreamReport(stream, grant_epoch, Progress(0), 0, sent=0)
                self.tell(UpdateProgress(name, epoch, (final,), final=True))
            case Revoked(name, epoch, stream, grant_epoch):
                self.tell(RevokeFinished(name, epoch, stream, grant_epoch))
            case _:
                pass

    def holders(self) -> Counter[bytes | None]:
        return Counter(
            lent.holder if lent.state in HELD else None for lent in self.leader.streams.values()
        )

    def held(self, name: bytes) -> int:
        return self.holders()[name]


S = StreamState


def test_a_step_computes_shares_and_each_of_the_next_ones_begins_a_portion_of_the_moves() -> None:
    crowd = Crowd()
    crowd.join(ANN)
    begun = [crowd.ring() for _ in range(5)]
    assert begun == [0] + [MOVES_A_STEP_MAX] * 3 + [50], (
        "shares are computed in a step of their own"
    )
    assert crowd.now_ms < GATHER_MS + 10
    crowd.settle()
    assert crowd.holders() == {ANN: MANY}


def test_others_are_answered_between_two_portions() -> None:
    crowd = Crowd()
    crowd.join(ANN)
    crowd.begin()
    before = len(crowd.leader.moves)
    assert crowd.feed(Received(Ping(ANN, 1, 0), crowd.now_ms)) == 0
    assert len(crowd.leader.moves) == before
    assert view(crowd.leader, crowd.now_ms).rebalancing


def test_a_member_that_joins_among_the_portions_gets_its_share() -> None:
    crowd = Crowd()
    crowd.join(ANN)
    crowd.begin()
    crowd.join(BOB)
    crowd.settle()
    assert crowd.holders() == {ANN: MANY // 2, BOB: MANY // 2}
    assert not view(crowd.leader, crowd.now_ms).rebalancing


def test_a_member_that_dies_among_the_portions_gets_no_more() -> None:
    crowd = Crowd()
    crowd.join(ANN)
    crowd.join(BOB)
    crowd.begin()
    crowd.feed(SessionClosed(BOB, crowd.now_ms))
    crowd.settle()
    assert crowd.holders() == {ANN: MANY}


def test_once_a_rebalance_is_asked_for_nothing_is_taken_from_a_member_until_it_comes() -> None:
    crowd = Crowd(streams=5 * MOVES_A_STEP_MAX)
    crowd.join(ANN)
    crowd.settle()
    crowd.join(BOB)
    while not crowd.shares()[S.REVOKING]:
        crowd.ring()
    assert crowd.shares()[S.REVOKING] == MOVES_A_STEP_MAX
    crowd.join(CAT)
    rebalanced_ms = crowd.leader.rebalanced_ms
    while crowd.leader.moves:
        crowd.ring()
    assert crowd.leader.rebalanced_ms == rebalanced_ms
    assert crowd.shares()[S.REVOKING] == MOVES_A_STEP_MAX
    crowd.settle()
    assert sorted(crowd.holders().values()) == [333, 333, 334]


def test_a_stream_that_goes_away_among_the_portions_is_not_lent() -> None:
    crowd = Crowd()
    crowd.join(ANN)
    crowd.begin()
    gone = crowd.leader.moves[-1][0]
    crowd.feed(StreamsChanged(crowd.now_ms, gone=(gone,)))
    crowd.settle()
    assert crowd.holders() == {ANN: MANY - 1}


def test_after_a_restart_many_streams_return_in_portions_before_newcomers_get_any() -> None:
    crowd = Crowd(held_by=ANN)
    crowd.join(ANN)
    crowd.join(BOB)
    while crowd.shares()[S.FREE]:
        assert crowd.held(BOB) == 0
        assert crowd.ring() <= 2 * MOVES_A_STEP_MAX
    crowd.settle()
    assert crowd.holders() == {ANN: MANY // 2, BOB: MANY // 2}


def test_deaths_one_by_one_do_not_each_cost_a_rebalance_of_a_large_group() -> None:
    crowd = Crowd()
    names = [bytes([at]) for at in range(40)]
    for name in (ANN, *names):
        crowd.join(name)
    crowd.settle()
    computed = set()
    for name in names:
        crowd.now_ms += 1
        crowd.feed(SessionClosed(name, crowd.now_ms))
        computed.add(crowd.leader.rebalanced_ms)
        crowd.settle(0)
    assert len(computed) <= 2 + len(names) // (MANY // STREAMS_A_REBALANCE_MS)
    crowd.settle()
    assert crowd.holders() == {ANN: MANY}


@pytest.mark.parametrize("streams", [8, STREAMS_A_REBALANCE_MS - 1])
def test_a_death_in_a_small_group_is_acted_on_in_its_step(streams: int) -> None:
    crowd = Crowd(streams=streams)
    for name in (ANN, BOB, CAT):
        crowd.join(name)
    crowd.settle()
    for name in (BOB, CAT):
        crowd.feed(SessionClosed(name, crowd.now_ms))
    assert crowd.holders() == {ANN: streams}


def test_many_resends_that_are_due_at_once_leave_over_several_steps() -> None:
    crowd = Crowd()
    crowd.join(ANN)
    crowd.settle()
    crowd.join(BOB)
    while crowd.held(ANN) == MANY and crowd.shares()[S.REVOKING] < MANY // 2:
        crowd.ring()
    crowd.inbox.clear()
    sent = []
    for _ in range(20):
        before = len(crowd.inbox)
        crowd.ring()
        sent.append(len(crowd.inbox) - before)
        if sum(sent) >= MANY // 2:
            break
    assert sum(sent) == MANY // 2
    assert max(sent) <= TIMERS_A_STEP_MAX


def test_a_member_that_dies_before_it_inherits_leaves_no_heir_behind() -> None:
    crowd = Crowd()
    crowd.join(ANN)
    crowd.settle()
    crowd.join(BOB)
    while crowd.shares()[S.REVOKING] < MANY // 2:
        crowd.ring()
    assert len(crowd.leader.members[BOB].inherits) == MANY // 2
    crowd.feed(SessionClosed(BOB, crowd.now_ms))
    assert all(lent.heir in (None, ANN) for lent in crowd.leader.streams.values())
    crowd.settle()
    assert crowd.holders() == {ANN: MANY}
