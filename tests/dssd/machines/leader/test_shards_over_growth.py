"""An ordered group by shards, while its topic grows: what is closed is in nobody's share."""

from dataclasses import replace

from dss_core.ids import StreamId
from dss_core.progress import Progress
from dssd.machines.leader.events import (
    Concluded,
    Instructed,
    LeaderEffect,
    LeaderInput,
    Parents,
    Rehome,
    Rehomed,
    ShareByShards,
    StoredStream,
)
from dssd.machines.leader.lent_stream import StreamState
from dssd.machines.leader.rebalance import planned_shares
from dssd.machines.leader.slicing import Slicing
from dssd.machines.leader.state import Leader
from dssd.machines.messages import LeaderWanted, RevokeFinished, StreamReport, UpdateProgress
from dssd.machines.queues import Queues, QueueState
from support.played_leader import LEADER, LeaderRun, session_of

ANN, BOB = b"ann", b"bob"
END = 10
OLD, NEW = 1, 2
PARTITIONS = {OLD: 2, NEW: 4}
FIRST, SECOND = StreamId(OLD, 0), StreamId(OLD, 1)


def queues(stream: StreamId, waiting: int = 0) -> Queues:
    retry, dead = (StreamId(100 * level + stream.storage_topic_id, stream.partition)
                   for level in (1, 2))  # fmt: skip
    return QueueState(retry, Progress(0), waiting, begun=1, ended=1), QueueState(dead, Progress(0))


def stored(stream: StreamId, pinned_to: bytes | None = None) -> StoredStream:
    """Of the old storage topic, sealed at its end, or of the new one, which has twice as many."""
    is_old = stream.storage_topic_id == OLD
    parents: Parents = () if is_old else (StreamId(OLD, stream.partition // 2),)
    return StoredStream(
        stream, Progress(0), 0, END, END if is_old else None, queues=queues(stream),
        parents=parents, pinned_session_id=None if pinned_to is None else session_of(pinned_to),
    )  # fmt: skip


class Run(LeaderRun):
    """A group of two sealed streams, and of two children of each."""

    def __init__(self, shards: int, pins: dict[StreamId, bytes] | None = None) -> None:
        self.effects: list[LeaderEffect] = []
        streams = [StreamId(part, at) for part, many in PARTITIONS.items() for at in range(many)]
        rows = [stored(each, (pins or {}).get(each)) for each in streams]
        super().__init__(Leader(LEADER), *rows, slicing=Slicing(shards, PARTITIONS))

    def feed(self, given_input: LeaderInput) -> list[LeaderEffect]:
        effects = super().feed(given_input)
        self.effects += effects
        return effects

    def rest(self) -> None:
        """All that is asked for is answered, and made durable."""
        self.pass_ms(250)
        self.commit_all()
        for stream, lent in self.leader.streams.items():
            if lent.state is StreamState.GRANTING:
                self.report(stream, 0, queues(stream))
        self.commit_all()

    def join(self, *names: bytes, by_shard: bool = False) -> None:
        for each in names:
            session, client_id = session_of(each), each.decode()
            self.tell(LeaderWanted(each, 0, session, client_id, by_shard=by_shard))
        self.rest()

    def report(self, stream: StreamId, floor: int, held: Queues, *, final: bool = False) -> None:
        lent = self.leader.streams[stream]
        epoch, holder = lent.grant_epoch, lent.holder
        assert holder is not None
        said = StreamReport(stream, epoch, Progress(floor), floor, sent=floor, queues=held)
        self.tell(UpdateProgress(holder, LEADER, (said,), final))
        self.commit_all()
        if lent.state is StreamState.REVOKED:
            self.tell(RevokeFinished(holder, LEADER, stream, epoch))
            self.commit_all()

    def finish(self, stream: StreamId) -> None:
        self.report(stream, END, queues(stream))
        self.rest()

    def rehoming(self, stream: StreamId) -> Rehome:
        """It is read to the end, and something waits: the leader has it re-homed."""
        self.report(stream, END, queues(stream, waiting=1))
        self.report(stream, END, queues(stream, waiting=1), final=True)
        [asked] = [each for each in self.effects if isinstance(each, Rehome)]
        return asked

    def rehomed(self, asked: Rehome) -> None:
        retry, dead = asked.queues
        done = replace(retry, progress=Progress(retry.applied_end), begun=0, ended=0), dead
        self.feed(Rehomed(asked.stream, asked.grant_epoch, done, self.now_ms))
        self.rest()

    def set_count(self, number: int, shards: int) -> None:
        given = ShareByShards(number, Slicing(shards, PARTITIONS))
        self.feed(Instructed(given, self.now_ms))
        self.rest()

    def holders(self) -> dict[StreamId, bytes | None]:
        """Of what is lent."""
        return {
            stream: lent.holder
            for stream, lent in self.leader.streams.items()
            if lent.state is StreamState.GRANTED
        }

    def done(self) -> list[int]:
        return [each.number for each in self.effects if isinstance(each, Concluded)]


def test_another_count_moves_nothing_that_is_closed_and_is_done_without_it() -> None:
    run = Run(2)
    run.join(ANN, BOB)
    before = run.holders()
    assert sorted(before.values(), key=str) == [ANN, BOB]
    assert planned_shares(run.leader, Slicing(4, PARTITIONS)) == ()
    run.set_count(1, 4)
    assert (run.done(), run.holders()) == ([1], before)


def test_what_opens_goes_to_who_has_its_shard_and_balances_the_shards_that_are_open() -> None:
    run = Run(2)
    run.join(ANN, BOB)
    other = run.holders()[SECOND]
    run.finish(FIRST)
    owners = run.holders()
    assert owners.keys() == {SECOND, StreamId(NEW, 0), StreamId(NEW, 1)}
    assert owners[SECOND] == other
    assert {owners[StreamId(NEW, 0)], owners[StreamId(NEW, 1)]} == {ANN, BOB} - {other}


def test_a_count_that_is_set_while_a_lane_is_re_homed_counts_for_what_opens_behind_it() -> None:
    run = Run(2)
    run.join(ANN, BOB)
    asked = run.rehoming(FIRST)
    run.set_count(1, 1)
    assert run.done() == [1]
    assert run.holders().keys() == {SECOND}
    run.rehomed(asked)
    assert run.holders().keys() == {SECOND, StreamId(NEW, 0), StreamId(NEW, 1)}
    assert len(set(run.holders().values())) == 1


def test_who_keeps_state_by_shard_has_children_with_the_epoch_of_the_shard_that_it_kept() -> None:
    run = Run(1)
    run.join(ANN, by_shard=True)
    run.join(BOB)
    epoch = run.leader.streams[SECOND].shard_epoch
    assert epoch
    run.finish(FIRST)
    assert set(run.holders().values()) == {ANN}
    assert {run.leader.streams[each].shard_epoch for each in run.holders()} == {epoch}
    run.rehomed(run.rehoming(SECOND))
    assert run.holders() == {StreamId(NEW, at): ANN for at in range(4)}
    assert {run.leader.streams[each].shard_epoch for each in run.holders()} == {epoch}


def test_the_pin_of_a_closed_stream_counts_once_it_is_open() -> None:
    child = StreamId(NEW, 0)
    run = Run(2, {FIRST: ANN, child: BOB})
    run.join(ANN, BOB)
    assert run.holders()[FIRST] == ANN
    assert run.leader.streams[child].pinned_session_id == session_of(BOB)
    run.finish(FIRST)
    assert run.holders()[child] == run.holders()[StreamId(NEW, 1)] == BOB
