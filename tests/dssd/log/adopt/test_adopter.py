"""Frames that come all at once: where they lie, who waits, and what a failure or a crash leaves."""

import asyncio
import errno
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.errors import DiskFull, FrameCorrupt, StorageTopicSealed
from dss_core.ids import StreamId
from dss_core.producer_ids import NO_PRODUCER
from dssd.log.adopt import adopter
from dssd.log.adopt.adopter import ADOPT_RESTED_BYTES
from dssd.log.port import Adopted, Append, Publication
from dssd.log.segment.file import SEGMENT_SUFFIX
from dssd.log.settings import LogSettings
from dssd.store.port import Exists, PreconditionFailed, Put
from dssd.store.rows import BanRow

Bench = Any
TOPIC = 7
BAN = BanRow(1, "a", 2, 3)
NOTHING_MORE = Publication()
NEVER = Publication(preconditions=[Exists(BanRow, (9, "nobody"))])


def staged(*payloads: bytes, partition: int = 0) -> bytes:
    columns = Columns(payloads=list(payloads), subjects="orders")
    return build_frame(columns, partition=partition, producer_id=NO_PRODUCER, sequence=0)


async def adopt(bench: Bench, *frames: bytes, published: Publication = NOTHING_MORE) -> Adopted:
    adopted: Adopted = await bench.log.adopt(
        TOPIC, lambda: [frames], topic_epoch=1, publish=lambda _: published
    )
    return adopted


def files(bench: Bench) -> list[str]:
    return sorted(path.name for path in bench.directory.iterdir())


async def states(bench: Bench) -> list[str]:
    return [row.state for row in await bench.rows()]


async def test_adopted_frames_lie_between_the_frames_before_and_those_behind(bench: Bench) -> None:
    await bench.put(b"a0")
    await bench.put(b"b0", partition=1)

    adopted = await adopt(bench, staged(b"a1", b"a2"), staged(b"b1", partition=1), staged(b"a3"))
    await bench.put(b"a4")

    assert adopted.ranges == {0: (1, 4), 1: (1, 2)}
    assert (adopted.records, adopted.frames) == (4, 3)
    assert await bench.payloads() == {0: b"a0", 1: b"a1", 2: b"a2", 3: b"a3", 4: b"a4"}
    assert await bench.payloads(1) == {0: b"b0", 1: b"b1"}
    assert await states(bench) == ["sealed", "ingested", "active"]
    assert await bench.damaged() == []


@pytest.mark.parametrize("crash", [False, True])
async def test_adopted_frames_are_there_after_a_restart(bench: Bench, crash: bool) -> None:
    await bench.put(b"a0")
    await adopt(bench, staged(b"a1", b"a2"))
    await bench.put(b"a3")
    await adopt(bench, staged(b"a4"), staged(b"c0", partition=2))

    await bench.reopen(crash=crash)
    await bench.put(b"a5")

    assert list((await bench.payloads()).values()) == [b"a%d" % number for number in range(6)]
    assert await bench.payloads(2) == {0: b"c0"}
    assert bench.reasons() == []
    assert bench.quarantine() == []


async def test_an_index_that_is_lost_is_made_anew_from_adopted_frames(bench: Bench) -> None:
    await adopt(bench, *(staged(b"a%d" % number) for number in range(5)))
    await bench.log.close()
    for index in bench.directory.glob("*.idx"):
        index.unlink()

    await bench.open()

    assert list((await bench.payloads()).values()) == [b"a%d" % number for number in range(5)]


async def test_the_rows_of_the_caller_come_with_the_frames(bench: Bench) -> None:
    seen: list[Adopted] = []

    def publish(adopted: Adopted) -> Publication:
        seen.append(adopted)
        return Publication([Put(BAN)])

    adopted = await bench.log.adopt(TOPIC, lambda: [[staged(b"a")]], topic_epoch=1, publish=publish)

    assert seen == [adopted]
    assert (await bench.store.read(BanRow, (1, "a"))).row == BAN


async def test_frames_that_rest_on_their_way_hold_no_producer_back_and_come_all_at_once(
    bench: Bench,
) -> None:
    frames = [[staged(bytes(ADOPT_RESTED_BYTES))] for _ in range(3)]
    pieces: list[int] = []

    async def rest(piece_bytes: int) -> None:
        pieces.append(piece_bytes)
        await bench.put(b"live %d" % len(pieces))
        assert bench.log.span(StreamId(TOPIC, 0)) == (0, len(pieces))

    adopted = await bench.log.adopt(
        TOPIC, lambda: frames, topic_epoch=1, publish=lambda _: NOTHING_MORE, rest=rest
    )

    assert pieces == [len(frame) for some in frames for frame in some]
    assert adopted.ranges == {0: (3, 6)}
    assert list(await bench.payloads()) == [0, 1, 2, 3, 4, 5]


async def test_frames_that_are_refused_behind_a_rest_leave_no_file(bench: Bench) -> None:
    def frames() -> Iterable[list[bytes]]:
        yield [staged(bytes(ADOPT_RESTED_BYTES))]
        raise FrameCorrupt(reason="a test")

    async def rest(_piece_bytes: int) -> None:
        await bench.put(b"live")

    with pytest.raises(FrameCorrupt):
        await bench.log.adopt(
            TOPIC, frames, topic_epoch=1, publish=lambda _: NOTHING_MORE, rest=rest
        )
    assert await bench.payloads() == {0: b"live"}
    assert not any(name.endswith(".tmp") for name in files(bench))


async def test_a_condition_that_does_not_hold_publishes_nothing_and_leaves_no_file(
    bench: Bench,
) -> None:
    await bench.put(b"a0")
    with pytest.raises(PreconditionFailed):
        await adopt(bench, staged(b"lost"), published=NEVER)

    await bench.put(b"a1")
    assert await bench.payloads() == {0: b"a0", 1: b"a1"}
    await bench.reopen()
    assert await bench.payloads() == {0: b"a0", 1: b"a1"}
    assert "ingested" not in await states(bench)
    assert not any(name.endswith((".tmp", ".adopting")) for name in files(bench))
    assert len([name for name in files(bench) if name.endswith(".seg")]) == 2


async def test_frames_that_fail_on_the_way_publish_nothing(bench: Bench) -> None:
    def frames() -> Iterable[list[bytes]]:
        yield [staged(b"a0")]
        raise FrameCorrupt(reason="a test")

    with pytest.raises(FrameCorrupt):
        await bench.log.adopt(TOPIC, frames, topic_epoch=1, publish=lambda _: Publication())
    assert bench.log.span(StreamId(TOPIC, 0)) == (0, 0)
    assert not any(name.endswith(".tmp") for name in files(bench))


async def test_nothing_but_rows_is_published_where_there_are_no_frames(bench: Bench) -> None:
    adopted = await adopt(bench, published=Publication([Put(BAN)]))
    assert adopted.ranges == {}
    assert (await bench.store.read(BanRow, (1, "a"))).row == BAN
    assert not any(name.endswith(SEGMENT_SUFFIX) for name in files(bench))


async def test_appends_meanwhile_wait_and_keep_their_order(
    bench: Bench, make_frame: Callable[..., bytes]
) -> None:
    stream = StreamId(TOPIC, 0)
    appends = [Append(stream, make_frame(b"%d" % at, sequence=at), 1) for at in range(20)]

    async with asyncio.TaskGroup() as tasks:
        first = [tasks.create_task(bench.log.append([one])) for one in appends[:10]]
        adopted = tasks.create_task(adopt(bench, staged(b"x", b"y")))
        await asyncio.sleep(0)
        tasks.create_task(bench.log.append(appends[10:]))

    found = list((await bench.payloads()).values())
    base = adopted.result().ranges[0][0]
    assert found[base : base + 2] == [b"x", b"y"]
    assert [each for each in found if each.isdigit()] == [b"%d" % at for at in range(20)]
    assert all(task.done() for task in first)


async def test_append_times_never_fall_from_adopted_frames_to_those_behind(bench: Bench) -> None:
    bench.now_us = 9_000_000
    await adopt(bench, staged(b"a0"))
    bench.now_us = 1_000_000
    later = await bench.put(b"a1")
    assert later.append_time_us == 9_000_000
    assert await bench.log.time_at(StreamId(TOPIC, 0), 0) == 9_000_000


async def test_append_times_do_not_fall_once_retention_took_the_adopted_frames(
    bench: Bench,
) -> None:
    bench.now_us = 9_000_000
    await adopt(bench, staged(b"a0"))
    await bench.settle()
    assert await bench.log.enforce_retention(TOPIC, None, 0, bench.now_us) == 1
    bench.now_us = 1_000_000
    await bench.reopen(crash=True)
    assert (await bench.put(b"a1")).append_time_us == 9_000_000


async def test_readers_are_told_once_and_read_across_all_files(bench: Bench) -> None:
    stream = StreamId(TOPIC, 0)
    told: list[int] = []
    await bench.put(b"a0")
    bench.log.watch(stream, lambda: told.append(bench.log.span(stream)[1]))
    await adopt(bench, staged(b"a1"))
    assert told == [2]
    assert (await bench.log.read(stream, 1, bytes_max=1 << 20)).next == 2


async def test_a_sealed_storage_topic_adopts_nothing(bench: Bench) -> None:
    await bench.put(b"a0")
    await bench.seal()
    with pytest.raises(StorageTopicSealed):
        await adopt(bench, staged(b"a1"))
    assert await bench.payloads() == {0: b"a0"}


async def test_a_full_disk_refuses_and_appends_go_on_once_there_is_room(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space")

    await bench.put(b"a0")
    with monkeypatch.context() as patched:
        patched.setattr(adopter, "stamp_copy", full)
        with pytest.raises(DiskFull):
            await adopt(bench, staged(b"x"))
    await bench.put(b"a1")
    await adopt(bench, staged(b"a2"))
    assert list((await bench.payloads()).values()) == [b"a0", b"a1", b"a2"]


async def test_a_cancelled_caller_leaves_all_of_it_or_nothing(bench: Bench) -> None:
    task = asyncio.create_task(adopt(bench, staged(b"a0", b"a1")))
    await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await bench.put(b"z")
    found = list((await bench.payloads()).values())
    assert found in ([b"z"], [b"a0", b"a1", b"z"])
    assert not any(name.endswith(".tmp") for name in files(bench))


async def test_a_mark_beside_a_published_segment_goes_at_the_next_start(bench: Bench) -> None:
    await adopt(bench, staged(b"a0", b"a1"))
    await bench.crash()
    (row,) = [row for row in await bench.rows() if row.state == "ingested"]
    mark = bench.directory / f"{TOPIC:08x}-{row.segment_id:016x}.adopting"
    assert not mark.exists()
    mark.touch()

    await bench.open()

    assert await bench.payloads() == {0: b"a0", 1: b"a1"}
    assert not mark.exists()


async def test_a_copy_that_was_not_published_is_gone_after_a_restart(bench: Bench) -> None:
    await bench.put(b"a0")
    await bench.crash()
    (bench.directory / "copy-0.tmp").write_bytes(b"x")
    stem = f"00000007-{await bench.store.next_id():016x}."
    for suffix in ("seg", "idx", "adopting"):
        (bench.directory / f"{stem}{suffix}").write_bytes(b"x")
    await bench.open()
    assert not any(name.endswith(".tmp") or stem in name for name in files(bench))
    assert bench.reasons() == []


async def test_retention_takes_adopted_segments_in_their_turn(
    make_bench: Callable[[LogSettings], Bench],
) -> None:
    bench = make_bench(LogSettings())
    await bench.prepare()
    await bench.open()
    await bench.put(b"a0")
    bench.now_us = 50_000_000
    await adopt(bench, staged(b"a1"))
    bench.now_us = 100_000_000
    await bench.put(b"a2")

    assert await bench.log.enforce_retention(TOPIC, 60_000, None, 100_000_000) == 1
    assert list(await bench.payloads()) == [1, 2]
    assert await bench.log.enforce_retention(TOPIC, 60_000, None, 120_000_000) == 1
    assert list(await bench.payloads()) == [2]


async def test_many_adoptions_of_an_idle_topic_leave_no_empty_files(bench: Bench) -> None:
    for number in range(5):
        await adopt(bench, staged(b"a%d" % number))
    assert await states(bench) == ["ingested"] * 5 + ["active"]
    await bench.reopen(crash=True)
    assert len(await bench.payloads()) == 5


async def test_adoptions_at_once_follow_each_other(bench: Bench) -> None:
    async with asyncio.TaskGroup() as tasks:
        for number in range(4):
            tasks.create_task(adopt(bench, staged(b"%d" % number, b"%d" % number)))
    found = list((await bench.payloads()).values())
    assert sorted(found) == sorted([b"%d" % number for number in range(4)] * 2)
    assert all(found[at] == found[at + 1] for at in range(0, 8, 2))
