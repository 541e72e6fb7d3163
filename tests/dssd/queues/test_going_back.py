"""What waits in a later lane goes back to the stream that is read again: what comes before its end,
of its keys, once."""

import asyncio
from dataclasses import dataclass, replace

import pytest

from dss_core.errors import DiskFull
from dss_core.lane import DEAD, MAIN, RETRY, LaneEntry
from dss_core.progress import Progress
from dssd.log.port import Answered, Append
from dssd.machines.delivery.causes import REDRIVEN, REFUSED
from dssd.machines.delivery.events import Move, MovePiece
from dssd.machines.queues import SKIP, Queues, QueueState, Redrive
from dssd.queues import gathering
from dssd.queues.entries import lane_of
from dssd.queues.going_back import GoingBack, Gone, LaterLane, go_back
from dssd.queues.lane import Lane
from dssd.queues.moving import move
from dssd.queues.rehoming import Child, Rehoming, rehome
from support.held_lane import Holder, piece

pytestmark = pytest.mark.usefixtures("short_turns")

NOTHING = Progress(0)
KEYS = (b"0", b"2", b"1", b"6")
OURS = (b"0", b"1")
"""Keys of the stream that is read again: one waits for its next attempt, one is dead. The two
others are of a stream beside it."""


@pytest.fixture(autouse=True)
def no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "AGAIN_S", 0)


@dataclass
class Switched:
    """A stream that was read to its end, and a later lane that has what was left of it."""

    old: Holder
    new: Holder
    queues: Queues
    """Of the old one, in which nothing is left."""
    epoch: int = 20

    def later(self, progress: Progress = NOTHING, applied: tuple[int, int] | None = None) -> Queues:
        """The queues of the later lane, of which all was reported, or so much."""
        ends = [self.new.shelf.log.span(each)[1] for each in self.new.levels[RETRY:]]
        retry, dead = applied or ends
        return (
            QueueState(self.new.levels[RETRY], progress, retry),
            QueueState(self.new.levels[DEAD], NOTHING, dead),
        )

    def asked(self, later: Queues, main: Progress = NOTHING) -> GoingBack:
        lane = replace(self.old.lane(self.epoch), is_ordered=True)
        later_lane = LaterLane(new_lane(self.new, self.epoch), main, later, self.new.trouble)
        return GoingBack(
            lane, self.queues, (later_lane,), lambda hashed: not hashed % 2, 3, self.old.trouble
        )

    async def back(self, later: Queues, main: Progress = NOTHING) -> Gone:
        gone = await go_back(self.asked(later, main), self.old.parts)
        assert gone is not None
        return gone

    async def arrived(self, level: int) -> list[tuple[bytes | None, LaneEntry]]:
        """What came back."""
        rows = await self.old.rows(level)
        begin = self.queues[level - 1].applied_end
        return [(row[2], lane_of(row[4])) for row in rows if row[0] >= begin]

    async def sources(self, level: int) -> list[tuple[int, int]]:
        return [(each.source_level, each.source_offset) for _, each in await self.arrived(level)]


def new_lane(holder: Holder, epoch: int) -> Lane:
    return Lane(holder.levels, 1, epoch, 7, "client", is_ordered=True)


async def move_on(switched: Switched, *pieces: MovePiece, epoch: int = 1) -> None:
    """As who held the later lane did."""
    holder = Holder(switched.old.shelf, new_lane(switched.new, epoch))
    holder.writers, holder.parts = switched.new.writers, switched.new.parts
    holder.is_ordered = True
    moved = await holder.move(*pieces, epoch=epoch)
    assert not moved.failed


@pytest.fixture
async def switched(holder: Holder) -> Switched:
    """Of each key a record failed in the old stream and waits in the new lane, one in two dead; and
    one of each failed in the new stream."""
    topics = [await holder.shelf.topic(name, 2) for name in ("next", "next.retry", "next.dead")]
    main, retry, dead = (topic.producing.streams()[1] for topic in topics)
    new = Holder(holder.shelf, Lane((main, retry, dead), 1, 1, 7, "client"))
    new.writers, new.parts = holder.writers, holder.parts
    for key in KEYS:
        await holder.publish(b"old " + key, key=key)
    await holder.opened(epoch=1)
    await holder.move(piece(0, 4, attempt=2, error="no", error_type="E"))
    await holder.move(piece(2, 4, level=RETRY, to=DEAD, attempt=3))
    states = (
        QueueState(holder.levels[RETRY], Progress(0, ((2, 4),)), 4),
        QueueState(holder.levels[DEAD], NOTHING, 2),
    )
    child = Child((retry, dead), (0, 0))
    lane = replace(holder.lane(9), is_ordered=True)
    rehoming = Rehoming(lane, Progress(4), states, (child,), lambda _: 0, 3)
    queues = await rehome(rehoming, holder.parts, holder.trouble)
    assert queues is not None
    made = Switched(holder, new, queues)
    for key in KEYS:
        await new.publish(b"new " + key, key=key)
    await new.opened(epoch=1)
    await move_on(made, piece(0, 4))
    return made


async def test_what_failed_before_the_end_of_the_stream_comes_back_and_the_rest_stays(
    switched: Switched,
) -> None:
    gone = await switched.back(switched.later(), Progress(4))
    [(retried, entry)] = await switched.arrived(RETRY)
    [(dead, letter)] = await switched.arrived(DEAD)
    assert (retried, dead) == OURS
    assert (entry.origin_ordinal, entry.attempt, entry.cause) == (0, 2, REFUSED)
    assert (entry.source_ordinal, entry.source_partition) == (1, 1)
    assert (entry.error_type, entry.due_ms) == ("E", 9_000)
    assert letter.origin_offset == KEYS.index(b"1")
    [(stream, queues)] = gone.items()
    assert stream == switched.new.levels[MAIN]
    # The other keys stay, and so does what failed in the new stream, also of these keys.
    assert queues[0].progress == Progress(1)
    assert queues[0].applied_end == 6
    assert queues[1].progress == Progress(1)
    assert [queue.fate.counts.retried for queue in queues] == [1, 1]


async def test_nothing_is_read_where_nothing_waits(switched: Switched) -> None:
    later = switched.later()
    done = tuple(replace(each, progress=Progress(each.applied_end)) for each in later)
    reads = switched.old.log.reads
    assert await switched.back(done) == {}
    assert switched.old.log.reads == reads


async def test_what_a_crash_left_in_the_queues_of_the_stream_is_not_doubled(
    switched: Switched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathering, "GATHERED_ENTRIES_MAX", 1)
    begin, begun = switched.old.log.begin_append, 0

    def dies_at_the_second(appends: list[Append], answered: Answered) -> None:
        nonlocal begun
        begun += 1
        if begun == 2:
            raise RuntimeError("the daemon died")
        begin(appends, answered)

    with monkeypatch.context() as dying:
        dying.setattr(switched.old.log, "begin_append", dies_at_the_second, raising=False)
        with pytest.raises(RuntimeError):
            await switched.back(switched.later(), Progress(4))
    switched.epoch += 1
    switched.old.writers._lanes.clear()
    await switched.back(switched.later(), Progress(4))
    arrived = await switched.arrived(RETRY) + await switched.arrived(DEAD)
    assert [key for key, _ in arrived] == list(OURS)


async def test_a_full_disk_is_waited_for(
    switched: Switched, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, refused = switched.old.writers.append, 0

    async def full_at_first(*given: object) -> object:
        nonlocal refused
        refused += 1
        if refused == 1:
            return [DiskFull()]
        return await append(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(switched.old.writers, "append", full_at_first)
    await switched.back(switched.later(), Progress(4))
    arrived = await switched.arrived(RETRY) + await switched.arrived(DEAD)
    assert [key for key, _ in arrived] == list(OURS)


async def test_of_what_nobody_reported_the_newest_entry_goes_back(switched: Switched) -> None:
    """The last holder of the later lane tried the first record once more, and died untold."""
    first = 0
    end = switched.new.shelf.log.span(switched.new.levels[RETRY])[1]
    await move_on(switched, piece(first, first + 1, level=RETRY, attempt=3))
    gone = await switched.back(switched.later(applied=(end, 2)), Progress(4))
    assert await switched.sources(RETRY) == [(RETRY, end)]
    [(retry, _)] = gone.values()
    assert retry.progress.is_acked(first)
    assert retry.progress.is_acked(end)
    assert retry.applied_end == end
    assert retry.fate.counts.retried == 2


async def test_what_has_no_key_goes_back_to_its_own_stream(switched: Switched) -> None:
    for holder in (switched.old, switched.new):
        await holder.publish(b"no key", key=None)
    await move_on(switched, piece(4, 5))
    old, new = switched.old.levels, switched.new.levels
    other = Lane((old[MAIN], new[RETRY], new[DEAD]), 0, 1, 7, "client", is_ordered=True)
    await move(Move(4, (piece(4, 5),)), other, switched.old.parts, switched.old.trouble)
    await switched.back(switched.later(), Progress(5))
    found = [(key, each.origin_ordinal) for key, each in await switched.arrived(RETRY)]
    assert found == [(b"0", 0), (None, 0)]


async def test_what_an_unfinished_rehoming_left_goes_nowhere(switched: Switched) -> None:
    """The old stream has its records still: they were appended to the new lane, and a crash came
    before that was stored."""
    retry, dead = switched.queues
    switched.queues = replace(retry, progress=Progress(0, ((1, 4),))), dead
    [(left, _)] = (await switched.back(switched.later(), Progress(4))).values()
    assert await switched.arrived(RETRY) == []
    assert [key for key, _ in await switched.arrived(DEAD)] == [b"1"]
    assert left.progress == Progress(1)
    # It is re-homed at the next end, for nothing is taken for being there.
    child = Child(
        (switched.new.levels[RETRY], switched.new.levels[DEAD]), (0, 0), (left.progress, NOTHING)
    )
    lane = replace(switched.old.lane(30), is_ordered=True)
    asked = Rehoming(lane, Progress(4), switched.queues, (child,), lambda _: 0, 3)
    assert await rehome(asked, switched.old.parts, switched.old.trouble) is not None
    rows = [(row[2], lane_of(row[4])) for row in await switched.new.rows(RETRY)]
    again = [key for key, said in rows if (said.source_ordinal, said.source_offset) == (0, 0)]
    assert again == [b"0", b"0"]


async def test_what_operators_asked_is_done_on_the_way(switched: Switched) -> None:
    retry, dead = switched.later()
    retry = retry.take_errand(7, SKIP, ((0, 1),))
    dead = dead.bring_back(Redrive(8, ((0, 2),)))
    [(retry, dead)] = (await switched.back((retry, dead), Progress(4))).values()
    back = [(key, each.cause, each.operation) for key, each in await switched.arrived(RETRY)]
    assert back == [(b"1", REDRIVEN, 8)]
    assert await switched.arrived(DEAD) == []
    assert (retry.fate.counts.moved, retry.errand.operation) == (1, 7)


async def test_who_held_the_later_lane_appends_nothing_more(switched: Switched) -> None:
    await switched.back(switched.later(), Progress(4))
    holder = Holder(switched.old.shelf, new_lane(switched.new, 1))
    holder.writers, holder.parts = switched.new.writers, switched.new.parts
    assert (await holder.move(piece(0, 1))).failed


async def test_a_later_leader_ends_it(switched: Switched) -> None:
    asked = switched.asked(switched.later())
    retry = switched.old.levels[RETRY]
    assert await switched.old.writers.take_over(retry, switched.epoch + 1)
    assert await go_back(asked, switched.old.parts) is None
    assert await switched.arrived(RETRY) == []


async def test_a_later_leader_that_came_between_reads_what_was_under_way(
    switched: Switched,
) -> None:
    begun = switched.old.log.hold()
    first = asyncio.ensure_future(switched.back(switched.later(), Progress(4)))
    await begun.wait()
    switched.epoch += 1
    second = asyncio.ensure_future(switched.back(switched.later(), Progress(4)))
    await asyncio.sleep(0)
    switched.old.log.go_on()
    await asyncio.gather(first, second, return_exceptions=True)
    arrived = await switched.arrived(RETRY) + await switched.arrived(DEAD)
    assert [key for key, _ in arrived] == list(OURS)
