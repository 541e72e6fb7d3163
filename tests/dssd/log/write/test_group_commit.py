import asyncio
import os
import threading
from collections.abc import Callable
from typing import Any

import pytest

from dss_core.ids import StreamId
from dssd.log.port import Append, Appended

Bench = Any


async def test_a_thousand_concurrent_sends_take_at_most_twenty_syncs(
    bench: Bench, make_frame: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.log.open_storage_topic(8, 12)
    usual = os.fdatasync
    syncs: list[str] = []

    def counted(fd: int) -> None:
        syncs.append(threading.current_thread().name)
        usual(fd)

    monkeypatch.setattr(os, "fdatasync", counted)

    async def send(number: int) -> Appended:
        partition = number % 12
        built = make_frame(b"%d" % number, partition=partition, sequence=number // 12)
        (result,) = await bench.log.append([Append(StreamId(8, partition), built, 1)])
        assert isinstance(result, Appended)
        return result

    results = await asyncio.gather(*(send(number) for number in range(1_000)))
    assert [result.base_offset for result in results] == [n // 12 for n in range(1_000)]
    assert len(syncs) <= 20
    assert set(syncs) == {"log-writer"}


async def test_no_reply_and_no_record_precede_the_sync_that_covers_them(
    bench: Bench, make_frame: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.put(b"before")
    usual = os.fdatasync
    syncing = asyncio.Event()
    loop = asyncio.get_running_loop()
    may_end = threading.Event()

    def held(fd: int) -> None:
        loop.call_soon_threadsafe(syncing.set)
        may_end.wait()
        usual(fd)

    monkeypatch.setattr(os, "fdatasync", held)
    grown: list[bool] = []
    bench.log.watch(StreamId(7, 0), lambda: grown.append(True))
    call = asyncio.create_task(bench.append(make_frame(b"a", sequence=1)))
    await syncing.wait()
    later = asyncio.create_task(bench.append(make_frame(b"b", sequence=2)))
    await asyncio.wait([call, later], timeout=0.02)
    assert not call.done()
    assert not later.done()
    assert grown == []
    assert await bench.payloads() == {0: b"before"}
    may_end.set()
    assert isinstance(await call, Appended)
    assert isinstance(await later, Appended)


async def test_frames_of_a_stream_lie_together_within_a_batch(
    bench: Bench, make_frame: Callable[..., bytes]
) -> None:
    await bench.put(b"before", partition=3)
    appends = [
        Append(StreamId(7, n % 2), make_frame(b"%d" % n, partition=n % 2, sequence=n // 2), 1)
        for n in range(10)
    ]
    await bench.log.append(appends)
    runs = bench.log._topics[7].last.runs
    assert [len(runs[partition]) for partition in (0, 1)] == [1, 1]


async def test_more_buffers_than_one_call_takes_are_written_whole(
    bench: Bench, make_frame: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = os.pwritev

    def short(fd: int, buffers: list[Any], position: int) -> int:
        assert len(buffers) <= 1_024
        head = b"".join(buffers)[:5_000]
        return usual(fd, [head], position)

    monkeypatch.setattr(os, "pwritev", short)
    appends = [Append(StreamId(7, 0), make_frame(b"%d" % n, sequence=n), 1) for n in range(2_000)]
    results = await bench.log.append(appends)
    assert [result.base_offset for result in results] == list(range(2_000))
    await bench.reopen(crash=True)
    assert await bench.payloads() == {n: b"%d" % n for n in range(2_000)}
