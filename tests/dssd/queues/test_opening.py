import pytest

from dss_core.lane import DEAD, LANE_HEADER, MAIN, RETRY
from dss_core.routing import key_hash
from dssd.machines.delivery.causes import DIED
from dssd.machines.delivery.events import EntriesRead, LaneOpened
from dssd.queues import opening
from dssd.queues.opening import ENTRIES_TOLD_MAX
from support.held_lane import Holder, entries_of, piece

pytestmark = pytest.mark.usefixtures("short_turns")


async def test_a_lane_without_entries_is_opened_at_once(holder: Holder) -> None:
    assert await holder.opened() == [
        EntriesRead(4, RETRY, (), 0),
        EntriesRead(4, DEAD, (), 0),
        LaneOpened(4),
    ]


async def test_a_next_holder_reads_what_was_moved_as_it_was_told(holder: Holder) -> None:
    await holder.publish(*[b"a" * 100] * 100)
    await holder.opened(epoch=1)
    moved = await holder.move(*(piece(at, at + 1, to=RETRY + at % 3 // 2) for at in range(100)))
    told = await holder.opened(epoch=2, retry_from=10, dead_from=3)
    for level, start in ((RETRY, 10), (DEAD, 3)):
        known = [entry for of, entry in moved.entries if of == level and entry.offset >= start]
        read = entries_of(told, level)
        assert [each[:5] for each in read] == [each[:5] for each in known]
        assert all(100 < each.size < 400 for each in read)
        ends = [each.end for each in told if isinstance(each, EntriesRead) and each.level == level]
        assert ends == sorted(ends)
        assert ends[-1] == known[-1].offset + 1
    opened = told[-1]
    assert isinstance(opened, LaneOpened)
    assert 100 < opened.dead_size < 400


async def test_many_entries_come_in_pieces(holder: Holder) -> None:
    await holder.publish(*[b"a"] * 6_000)
    await holder.opened()
    await holder.move(piece(0, 6_000))
    told = await holder.opened(epoch=2)
    assert [entry.offset for entry in entries_of(told, RETRY)] == list(range(6_000))
    reads = [each for each in told if isinstance(each, EntriesRead)]
    assert max(len(each.entries) for each in reads) <= ENTRIES_TOLD_MAX
    assert all(each.end == each.entries[-1].offset + 1 for each in reads if each.entries)


async def test_a_queue_that_cannot_be_read_is_read_again(
    holder: Holder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "OPEN_AGAIN_S", 0)
    await holder.publish(b"a")
    await holder.opened()
    await holder.move(piece(0, 1))
    holder.log.unreadable = 2
    assert len(entries_of(await holder.opened(epoch=2), RETRY)) == 1
    assert holder.trouble.told[-3:] == [("unreadable", RETRY)] * 2 + [("readable", RETRY)]


async def test_what_retention_took_of_a_queue_is_passed_over(holder: Holder) -> None:
    retry = holder.levels[RETRY]
    await holder.publish(b"a", b"b", b"c")
    await holder.opened()
    for at in range(3):
        await holder.move(piece(at, at + 1))
        await holder.shelf.log.roll(retry.storage_topic_id)
    await holder.shelf.log.trim(retry, 2)
    told = await holder.opened(epoch=2)
    assert [entry.source_offset for entry in entries_of(told, RETRY)] == [2]
    assert holder.trouble.damage == []


async def test_what_is_no_entry_counts_as_damaged(
    holder: Holder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "OPEN_AGAIN_S", 0)
    await holder.publish(b"a", b"b")
    await holder.publish(b"none", headers=((LANE_HEADER, b"\xff"),))
    await holder.opened()
    main, _, dead = holder.levels
    holder.levels = main, main, dead
    told = await holder.opened(epoch=2)
    assert entries_of(told, RETRY) == []
    assert holder.trouble.damage == [(RETRY, ((0, 3),))]
    assert MAIN != RETRY


async def test_of_an_ordered_lane_each_entry_tells_its_key_and_of_another_none(
    holder: Holder,
) -> None:
    await holder.publish(b"a", key=b"k")
    await holder.publish(b"b", key=None)
    await holder.opened()
    holder.is_ordered = True
    moved = await holder.move(piece(0, 1), piece(1, 2, cause=DIED))
    told = [entry for _, entry in moved.entries]
    assert [(each.key, each.is_suspect) for each in told] == [(key_hash(b"k"), False), (0, True)]
    assert [each[:5] + each[6:] for each in entries_of(await holder.opened(epoch=2), RETRY)] == [
        each[:5] + each[6:] for each in told
    ]
    holder.is_ordered = False
    assert [each.key for each in entries_of(await holder.opened(epoch=3), RETRY)] == [0, 0]
