"""What waits in the queues of a lane goes to its children: once, whatever happens on the way."""

import asyncio
from dataclasses import dataclass, replace

import pytest

from dss_core.errors import DiskFull
from dss_core.ids import StreamId
from dss_core.lane import DEAD, ERROR_HEADER, RETRY, LaneEntry
from dss_core.progress import Progress
from dss_core.routing import key_hash
from dssd.limits import ISOLATE_AFTER_DOUBTS
from dssd.log.port import Answered, Append
from dssd.machines.delivery.causes import DIED, FOLLOWS, GIVEN_UP, REDRIVEN, REFUSED
from dssd.machines.fate import Fate
from dssd.machines.queues import BURY, RETRY_NOW, SKIP, Queues, QueueState, Redrive
from dssd.queues import gathering
from dssd.queues.entries import error_of, lane_of
from dssd.queues.rehoming import Child, Rehoming, rehome
from support.held_lane import Holder, piece

pytestmark = pytest.mark.usefixtures("short_turns")

NOTHING = Progress(0)


@pytest.fixture(autouse=True)
def no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "AGAIN_S", 0)


@dataclass
class Home:
    """A lane whose stream is read to the end, and its two children."""

    holder: Holder
    children: tuple[Child, ...]
    keys: tuple[bytes, ...]
    """Of the records, by offset; the first of each child are k0 and k1."""
    epoch: int = 5

    def asked(self, retry: QueueState, dead: QueueState) -> Rehoming:
        lane = replace(self.holder.lane(self.epoch), is_ordered=True)
        queues = retry, dead
        main = Progress(len(self.keys))
        return Rehoming(lane, main, queues, self.children, lambda hashed: hashed % 2, 3)

    async def rehomed(self, retry: QueueState, dead: QueueState) -> Queues:
        asked = self.asked(retry, dead)
        queues = await rehome(asked, self.holder.parts, self.holder.trouble)
        assert queues is not None
        return queues

    def states(self, retry: Progress = NOTHING, dead: Progress = NOTHING) -> Queues:
        """As the last holder left them, who told of all that he had moved."""
        span = self.holder.shelf.log.span
        _, first, second = self.holder.levels
        return (
            QueueState(first, retry, span(first)[1]),
            QueueState(second, dead, span(second)[1]),
        )

    async def arrived(self, level: int) -> list[tuple[int, bytes | None, LaneEntry]]:
        """Child, key and entry of all that the children have."""
        found: list[tuple[int, bytes | None, LaneEntry]] = []
        levels = self.holder.levels
        for number, child in enumerate(self.children):
            self.holder.levels = levels[0], *child.queues
            found += [(number, row[2], lane_of(row[4])) for row in await self.holder.rows(level)]
        self.holder.levels = levels
        return found

    async def sources(self, level: int) -> list[tuple[int, int]]:
        return sorted(
            (entry.source_level, entry.source_offset) for _, _, entry in await self.arrived(level)
        )


def keys_of_both(count: int) -> tuple[bytes, ...]:
    """So many keys, those of the first child and those of the second in turn."""
    of: tuple[list[bytes], list[bytes]] = [], []
    for number in range(20 * count):
        key = str(number).encode()
        of[key_hash(key) % 2].append(key)
    return tuple(of[at % 2][at // 2] for at in range(count))


@pytest.fixture
async def home(holder: Holder) -> Home:
    topics = [await holder.shelf.topic(name, 4) for name in ("next.retry", "next.dead")]
    retry, dead = (topic.producing.storage_topic_id for topic in topics)
    children = tuple(Child((StreamId(retry, at), StreamId(dead, at)), (0, 0)) for at in (1, 3))
    keys = keys_of_both(6)
    for key in keys:
        await holder.publish(b"p" + key, key=key)
    await holder.opened(epoch=1)
    return Home(holder, children, keys)


async def test_each_entry_goes_to_the_queue_of_its_level_where_its_key_goes(home: Home) -> None:
    await home.holder.move(piece(0, 4, attempt=2, error="no", error_type="E"))
    await home.holder.move(piece(4, 6, to=DEAD, attempt=3))
    retry, dead = await home.rehomed(*home.states())
    arrived = await home.arrived(RETRY)
    assert [(child, key) for child, key, _ in arrived] == [
        (0, home.keys[0]),
        (0, home.keys[2]),
        (1, home.keys[1]),
        (1, home.keys[3]),
    ]
    first = arrived[0][2]
    assert (first.attempt, first.due_ms, first.cause, first.error_type) == (2, 9_000, REFUSED, "E")
    assert (first.source_ordinal, first.source_partition, first.grant_epoch) == (0, 1, home.epoch)
    assert (first.origin_ordinal, first.origin_partition, first.origin_offset) == (0, 1, 0)
    assert [key for _, key, _ in await home.arrived(DEAD)] == [home.keys[4], home.keys[5]]
    assert (retry.progress, retry.applied_end) == (Progress(4), 4)
    assert (dead.progress, dead.applied_end) == (Progress(2), 2)
    assert (retry.fate.counts.retried, dead.fate.counts.retried) == (4, 2)


async def test_the_text_of_an_error_goes_along(home: Home) -> None:
    await home.holder.move(piece(0, 1, error="no price", error_type="E"))
    await home.rehomed(*home.states())
    home.holder.levels = home.holder.levels[0], *home.children[0].queues
    [row] = await home.holder.rows(RETRY)
    assert error_of(row[4]) == "no price"
    assert [name for name, _ in row[4]].count(ERROR_HEADER) == 1


async def test_what_is_done_stays(home: Home) -> None:
    await home.holder.move(piece(0, 4))
    await home.rehomed(*home.states(Progress(1, ((2, 3),))))
    assert await home.sources(RETRY) == [(RETRY, 1), (RETRY, 3)]


async def test_nothing_is_begun_where_nothing_is_left(home: Home) -> None:
    await home.holder.move(piece(0, 2))
    reads = home.holder.log.reads
    retry, _ = await home.rehomed(*home.states(Progress(2)))
    assert (retry.progress, home.holder.log.reads) == (Progress(2), reads)


async def test_of_what_nobody_reported_the_newest_entry_lives_and_an_acknowledged_one_does_not(
    home: Home,
) -> None:
    moved = await home.holder.move(piece(0, 3))
    assert len(moved.entries) == 3
    # The second attempt of the first one, and the end of the second: nobody told of either.
    await home.holder.move(piece(0, 1, level=RETRY, attempt=2))
    await home.holder.move(piece(1, 2, level=RETRY, to=DEAD, attempt=3))
    retry, dead = home.states()
    retry, dead = replace(retry, applied_end=3), replace(dead, applied_end=0)
    retry, dead = await home.rehomed(retry, dead)
    assert await home.sources(RETRY) == [(RETRY, 2), (RETRY, 3)]
    assert await home.sources(DEAD) == [(DEAD, 0)]
    assert (retry.progress, dead.progress) == (Progress(4), Progress(1))


async def test_an_entry_whose_record_was_acknowledged_on_its_way_is_done(home: Home) -> None:
    await home.holder.move(piece(0, 2))
    # Both sources are acknowledged in the stream, and no report tells of the entries.
    retry, dead = home.states()
    retry, _ = await home.rehomed(replace(retry, applied_end=0), dead)
    assert await home.arrived(RETRY) == []
    assert (retry.fate.counts.acked, retry.fate.counts.retried) == (2, 0)


async def test_what_a_crash_left_in_the_children_is_not_doubled(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathering, "GATHERED_ENTRIES_MAX", 2)
    await home.holder.move(piece(0, 4))
    await home.holder.move(piece(4, 6, to=DEAD))
    begin = home.holder.log.begin_append
    begun = 0

    def dies_at_the_third(appends: list[Append], answered: Answered) -> None:
        nonlocal begun
        begun += 1
        if begun == 3:
            raise RuntimeError("the daemon died")
        begin(appends, answered)

    with monkeypatch.context() as dying:
        dying.setattr(home.holder.log, "begin_append", dies_at_the_third, raising=False)
        with pytest.raises(RuntimeError):
            await home.rehomed(*home.states())
    assert await home.sources(RETRY) == [(RETRY, at) for at in range(4)]
    home.epoch += 1
    home.holder.writers._lanes.clear()
    await home.rehomed(*home.states())
    assert await home.sources(RETRY) == [(RETRY, at) for at in range(4)]
    assert await home.sources(DEAD) == [(DEAD, 0), (DEAD, 1)]


async def test_two_parents_may_append_to_one_child(home: Home) -> None:
    await home.holder.move(piece(0, 2))
    await home.rehomed(*home.states())
    other = replace(home.asked(*home.states()), lane=replace(home.holder.lane(9), ordinal=1))
    await rehome(other, home.holder.parts, home.holder.trouble)
    assert await home.sources(RETRY) == [(RETRY, 0), (RETRY, 0), (RETRY, 1), (RETRY, 1)]


async def test_who_was_taken_over_appends_nothing_more(home: Home) -> None:
    await home.holder.move(piece(0, 4))
    asked = home.asked(*home.states())
    assert await home.holder.writers.take_over(home.holder.levels[RETRY], home.epoch + 1)
    assert await rehome(asked, home.holder.parts, home.holder.trouble) is None
    assert await home.arrived(RETRY) == []


async def test_a_holder_of_before_appends_nothing_once_it_has_begun(home: Home) -> None:
    begun = home.holder.log.hold()
    moving = asyncio.ensure_future(home.holder.move(piece(0, 1)))
    await begun.wait()
    retry, dead = home.states()
    asked = replace(home.asked(retry, dead), progress=NOTHING)
    rehoming_ = asyncio.ensure_future(rehome(asked, home.holder.parts, home.holder.trouble))
    await asyncio.sleep(0)
    home.holder.log.go_on()
    await moving
    await rehoming_
    # It waited for the append under way, and took its entry along.
    assert await home.sources(RETRY) == [(RETRY, 0)]
    assert (await home.holder.move(piece(1, 2))).failed


async def test_a_full_disk_and_a_torn_file_are_waited_for(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    await home.holder.move(piece(0, 4))
    home.holder.log.unreadable = 2
    append, refused = home.holder.writers.append, 0

    async def full_at_first(*given: object) -> object:
        nonlocal refused
        refused += 1
        if refused == 1:
            return [DiskFull()]
        return await append(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(home.holder.writers, "append", full_at_first)
    await home.rehomed(*home.states())
    assert await home.sources(RETRY) == [(RETRY, at) for at in range(4)]


async def test_what_an_operator_brings_back_comes_again_in_the_child(home: Home) -> None:
    await home.holder.move(piece(0, 3, to=DEAD, attempt=3))
    retry, dead = home.states()
    dead = dead.bring_back(Redrive(7, ((1, 3),)))
    _, dead = await home.rehomed(retry, dead)
    back = [entry for _, _, entry in await home.arrived(RETRY)]
    assert [(each.cause, each.attempt, each.operation) for each in back] == [
        (REDRIVEN, 0, 7),
        (REDRIVEN, 0, 7),
    ]
    assert await home.sources(DEAD) == [(DEAD, 0)]
    assert dead.redriving == 0


async def test_what_died_behind_whole_keys_comes_back_with_them(home: Home) -> None:
    key, others = home.keys[0], len(home.keys)
    await home.holder.publish(b"later", key=key)
    await home.holder.publish(b"failed", key=key)
    await home.holder.move(piece(0, 2, to=DEAD, attempt=3))
    await home.holder.move(piece(others, others + 1, to=DEAD, attempt=0, cause=FOLLOWS))
    await home.holder.move(piece(others + 1, others + 2, to=DEAD, attempt=3))
    retry, dead = home.states()
    await home.rehomed(retry, dead.bring_back(Redrive(7, ((0, 1),), whole_keys=True)))
    assert await home.sources(RETRY) == [(DEAD, 0), (DEAD, 2)]
    assert await home.sources(DEAD) == [(DEAD, 1), (DEAD, 3)]


async def test_what_an_operator_passes_over_goes_nowhere(home: Home) -> None:
    await home.holder.move(piece(0, 4))
    retry, dead = home.states()
    retry, _ = await home.rehomed(retry.take_errand(7, SKIP, ((1, 3),)), dead)
    assert await home.sources(RETRY) == [(RETRY, 0), (RETRY, 3)]
    assert await home.arrived(DEAD) == []
    assert (retry.fate.counts.moved, retry.fate.counts.retried) == (2, 2)
    assert (retry.errand.operation, retry.errand.ranges) == (7, ())


async def test_what_an_operator_gives_up_is_dead_in_the_child(home: Home) -> None:
    await home.holder.move(piece(0, 3, attempt=2))
    retry, dead = home.states()
    retry, _ = await home.rehomed(retry.take_errand(7, BURY, ((1, 2),)), dead)
    [(_, key, entry)] = await home.arrived(DEAD)
    assert (key, entry.cause, entry.attempt, entry.operation) == (home.keys[1], GIVEN_UP, 2, 7)
    assert await home.sources(RETRY) == [(RETRY, 0), (RETRY, 2)]
    assert not retry.errand.ranges


async def test_an_entry_made_of_a_named_one_is_given_up(home: Home) -> None:
    await home.holder.move(piece(0, 2))
    await home.holder.move(piece(0, 1, level=RETRY, attempt=2))
    retry, dead = home.states(Progress(1))
    await home.rehomed(retry.take_errand(7, BURY, ((0, 1),)), dead)
    assert await home.sources(DEAD) == [(RETRY, 2)]
    assert await home.sources(RETRY) == [(RETRY, 1)]


async def test_what_an_operator_brings_forward_is_due_in_the_child(home: Home) -> None:
    now_ms = home.holder.parts.clock.wall_ms()
    await home.holder.move(piece(0, 2, due_ms=now_ms + 60_000))
    retry, dead = home.states()
    await home.rehomed(retry.take_errand(7, RETRY_NOW, ((0, 1),)), dead)
    due = {entry.source_offset: entry.due_ms for _, _, entry in await home.arrived(RETRY)}
    assert due[0] <= home.holder.parts.clock.wall_ms()
    assert due[1] == now_ms + 60_000


async def test_what_clients_died_of_says_so_in_its_entry(home: Home) -> None:
    await home.holder.move(piece(0, 4))
    retry, dead = home.states()
    fate = Fate(failures=((0, 1, 1), (1, 2, 2)), doubts=((0, 3, ISOLATE_AFTER_DOUBTS),))
    await home.rehomed(replace(retry, fate=fate), dead)
    found = {entry.source_offset: entry for _, _, entry in await home.arrived(RETRY)}
    assert [(at, found[at].attempt, found[at].cause) for at in sorted(found)] == [
        (0, 2, DIED),
        (2, 1, DIED),
        (3, 1, REFUSED),
    ]
    [(_, _, killer)] = await home.arrived(DEAD)
    assert (killer.source_offset, killer.attempt, killer.cause) == (1, 3, DIED)


async def test_records_without_a_key_go_to_any_child(home: Home) -> None:
    await home.holder.publish(b"a", b"b", key=None)
    await home.holder.move(piece(6, 8))
    await home.rehomed(*home.states())
    assert sorted((child, key) for child, key, _ in await home.arrived(RETRY)) == [
        (0, None),
        (1, None),
    ]
