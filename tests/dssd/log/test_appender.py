"""Which calls wait before frames reach the writer, and what a cancelled call leaves."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from dss_core.errors import Overloaded, StreamNotFound
from dss_core.ids import StreamId
from dssd.log.port import Append, Appended
from dssd.log.segment.file import SegmentWriter
from dssd.log.settings import LogSettings
from dssd.store.port import Precondition, Put, Write
from dssd.store.rows import SegmentRow, StorageTopicRow

TOPIC, PARTITIONS = 7, 4
"""Those of the bench."""

Bench = Any
MakeFrame = Callable[..., bytes]


class SlowStore:
    """Blocks the creation of files of one storage topic."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, bench: Bench, storage_topic_id: int
    ) -> None:
        self.asked = asyncio.Event()
        self.go_on = asyncio.Event()
        self._storage_topic_id = storage_topic_id
        self._commit = bench.store.commit
        monkeypatch.setattr(bench.store, "commit", self.commit)

    async def commit(
        self, writes: Sequence[Write], preconditions: Sequence[Precondition] = ()
    ) -> list[int]:
        for write in writes:
            row = write.row if isinstance(write, Put) else None
            if isinstance(row, SegmentRow) and row.storage_topic_id == self._storage_topic_id:
                self.asked.set()
                await self.go_on.wait()
        versions: list[int] = await self._commit(writes, preconditions)
        return versions


async def test_calls_that_are_cancelled_while_they_wait_leave_room_for_others(
    make_bench: Callable[[LogSettings], Bench],
    monkeypatch: pytest.MonkeyPatch,
    make_frame: MakeFrame,
) -> None:
    bench = make_bench(LogSettings(writer_queue_bytes_max=1 << 20))
    await bench.prepare()
    await bench.open()
    slow = SlowStore(monkeypatch, bench, 7)
    large = make_frame(b"x" * 500_000)
    for _ in range(3):
        call = asyncio.create_task(bench.append(large))
        await slow.asked.wait()
        call.cancel()
        await asyncio.wait([call])
    slow.go_on.set()
    stored = await bench.append(large)
    assert isinstance(stored, Appended)
    assert bench.log._appender.queued_bytes == 0
    assert not stored.repeated


async def test_calls_that_cannot_wait_for_a_file_are_refused_and_leave_room_for_others(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, make_frame: MakeFrame
) -> None:
    waiting = bench.log._housekeeper._waiting
    with monkeypatch.context() as patched:
        patched.setattr(waiting, "full", lambda: True)
        for _ in range(2):
            assert isinstance(await bench.append(make_frame(b"a")), Overloaded)
    assert bench.log._appender.queued_bytes == 0
    assert isinstance(await bench.append(make_frame(b"a")), Appended)


async def test_the_first_file_of_one_topic_does_not_hold_up_another(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, make_frame: MakeFrame
) -> None:
    await bench.put(b"it has a file")
    bench.log.open_storage_topic(8, 1)
    slow = SlowStore(monkeypatch, bench, 8)
    first = asyncio.create_task(bench.log.append([Append(StreamId(8, 0), make_frame(b"a"), 1)]))
    await slow.asked.wait()
    assert (await bench.put(b"to another topic")).base_offset == 1
    second = asyncio.create_task(
        bench.log.append([Append(StreamId(8, 0), make_frame(b"b", sequence=1), 1)])
    )
    assert not first.done()
    slow.go_on.set()
    ((one,), (two,)) = await asyncio.gather(first, second)
    assert (one.base_offset, two.base_offset) == (0, 1), "calls keep their order"


async def test_a_roll_does_not_wait_for_a_removal(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.put(b"a")
    await bench.roll()
    trimmed, go_on = asyncio.Event(), asyncio.Event()
    usual = bench.store.commit

    async def slow(writes: Sequence[Write], *arguments: object) -> list[int]:
        if any(
            isinstance(write, Put) and isinstance(write.row, StorageTopicRow) for write in writes
        ):
            trimmed.set()
            await go_on.wait()
        versions: list[int] = await usual(writes, *arguments)
        return versions

    monkeypatch.setattr(bench.store, "commit", slow)
    trimming = asyncio.create_task(bench.log.trim(StreamId(7, 0), 1))
    await trimmed.wait()
    assert await bench.log.roll(7)
    assert not trimming.done()
    go_on.set()
    await trimming
    assert bench.log.bounds(StreamId(7, 0)).start == 1


async def test_a_topic_that_is_removed_while_it_gets_a_file_leaves_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, make_frame: MakeFrame
) -> None:
    slow = SlowStore(monkeypatch, bench, 7)
    call = asyncio.create_task(bench.append(make_frame(b"a")))
    await slow.asked.wait()
    removal = asyncio.create_task(bench.log.remove_storage_topic(7))
    await asyncio.sleep(0)
    slow.go_on.set()
    await removal
    await call
    assert bench.segments() == []
    assert await bench.rows() == []


async def test_a_file_whose_creation_was_refused_leaves_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.put(b"a")
    before = bench.segments()

    async def refused(*_: object) -> None:
        raise Overloaded(what="anything", limit=0)

    with monkeypatch.context() as patched:
        patched.setattr(bench.log._writer, "switch", refused)
        assert not await bench.log.roll(7)
    assert bench.segments() == before
    assert len(await bench.rows()) == 1
    assert (await bench.put(b"b")).base_offset == 1
    assert isinstance(bench.log._writer._topics[7].file, SegmentWriter)


@pytest.mark.usefixtures("short_turns")
async def test_a_batch_of_many_streams_is_shown_with_others_in_between(
    bench: Bench, make_frame: MakeFrame
) -> None:
    streams = [StreamId(TOPIC, partition) for partition in range(PARTITIONS)]
    rounds = 0
    grown_in: list[int] = []
    all_grown = asyncio.Event()

    def note_grown() -> None:
        grown_in.append(rounds)
        if len(grown_in) == len(streams):
            all_grown.set()

    for stream in streams:
        bench.log.watch(stream, note_grown)

    async def count_rounds() -> None:
        nonlocal rounds
        while True:
            rounds += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count_rounds())
    frames = [make_frame(b"x", partition=partition) for partition in range(PARTITIONS)]
    appends = [Append(*pair, 1) for pair in zip(streams, frames, strict=True)]
    results = await bench.log.append(appends)
    assert [type(result) for result in results] == [Appended] * PARTITIONS
    # All of a batch can be read before any caller of it is answered.
    assert [bench.log.bounds(stream).end for stream in streams] == [1] * PARTITIONS
    await all_grown.wait()
    assert len(set(grown_in)) == PARTITIONS
    counting.cancel()


@pytest.mark.usefixtures("short_turns")
async def test_a_roll_leaves_a_file_only_after_all_its_frames_were_shown(bench: Bench) -> None:
    for _ in range(3):
        putting = [asyncio.create_task(bench.put(b"x", partition=at)) for at in range(PARTITIONS)]
        await bench.roll()
        await asyncio.gather(*putting)
    await bench.roll()
    await bench.reopen()
    assert [await bench.payloads(at) for at in range(PARTITIONS)] == [
        dict.fromkeys(range(3), b"x") for _ in range(PARTITIONS)
    ]


async def test_frames_of_several_topics_are_answered_together_in_the_order_in_which_they_came(
    bench: Bench, make_frame: MakeFrame
) -> None:
    await bench.put(b"its topic begins with another offset")
    bench.log.open_storage_topic(8, 1)
    answers: list[list[Appended | BaseException]] = []
    answered = asyncio.Event()

    def take(results: list[Appended | BaseException]) -> None:
        answers.append(results)
        answered.set()

    appends = [
        Append(StreamId(number, 0), make_frame(b"a", sequence=sequence), 1)
        for number, sequence in ((8, 0), (TOPIC, 1), (8, 1), (9, 0))
    ]
    bench.log.begin_append(appends, take)
    assert not answers
    await answered.wait()
    (results,) = answers
    assert [type(result) for result in results] == [Appended] * 3 + [StreamNotFound]
    assert [getattr(result, "base_offset", None) for result in results] == [0, 1, 1, None]
