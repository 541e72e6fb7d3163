"""An index is a cache: no damage to it costs a record while its segment is there."""

import asyncio
import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dss_core.ids import StreamId
from dssd.log.recovery import index_rebuild, judge_segment
from dssd.log.settings import LogSettings

Bench = Any
RECORDS = 20


@pytest.fixture
async def sealed(make_bench: Callable[[LogSettings], Bench]) -> Bench:
    """A log without a tail cache whose first segment, of two streams, is sealed."""
    bench = make_bench(LogSettings(tail_cache_bytes_max=0, read_loop_us=60_000_000))
    await bench.prepare()
    await bench.open()
    for number in range(RECORDS):
        await bench.put(b"a%d" % number)
        await bench.put(b"b%d" % number, partition=1)
    await bench.roll()
    return bench


def damage_root(bench: Bench, partition: int) -> Path:
    (segment, _) = bench.log._topics[7].segments.values()
    path: Path = bench.segments()[0].with_suffix(".idx")
    content = bytearray(path.read_bytes())
    content[segment.summary.streams[partition].root] ^= 1
    path.write_bytes(content)
    return path


def read_all(bench: Bench, partition: int) -> "asyncio.Task[Any]":
    reading = bench.log.read(StreamId(7, partition), 0, bytes_max=1 << 20)
    return asyncio.create_task(reading)


async def test_readers_that_meet_during_an_index_rebuild_miss_nothing(
    sealed: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage_root(sealed, 0)
    made, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    usual: Any = index_rebuild.rebuilt_runs
    rebuilt = 0

    def slow(*arguments: object) -> object:
        nonlocal rebuilt
        rebuilt += 1
        loop.call_soon_threadsafe(made.set)
        go_on.wait()
        return usual(*arguments)

    monkeypatch.setattr("dssd.log.recovery.index_rebuild.rebuilt_runs", slow)
    first, second = read_all(sealed, 0), read_all(sealed, 0)
    await made.wait()
    other = await read_all(sealed, 1)
    go_on.set()
    for chunk in (await first, await second, other):
        assert (chunk.records, chunk.next, chunk.damaged) == (RECORDS, RECORDS, ())
    assert rebuilt == 1
    again = await read_all(sealed, 0)
    assert again.damaged == ()


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EMFILE])
async def test_an_index_that_cannot_be_stored_is_kept_in_memory_until_it_can(
    sealed: Bench, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    path = damage_root(sealed, 0)
    damaged, usual = path.read_bytes(), judge_segment.write_index

    def full(*_: object) -> None:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(judge_segment, "write_index", full)
    assert (await read_all(sealed, 0)).records == RECORDS
    assert path.read_bytes() == damaged
    monkeypatch.setattr(judge_segment, "write_index", usual)
    await sealed.roll()
    assert path.read_bytes() != damaged
    for partition in (0, 1):
        assert (await read_all(sealed, partition)).records == RECORDS
    await sealed.reopen(crash=True)
    assert len(await sealed.payloads()) == RECORDS


async def test_an_index_that_is_damaged_again_and_again_is_kept_in_memory(
    sealed: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage_root(sealed, 0)
    usual: Any = judge_segment.write_index

    def bad(*arguments: object) -> None:
        usual(*arguments)
        damage_root(sealed, 0)

    monkeypatch.setattr(judge_segment, "write_index", bad)
    assert (await read_all(sealed, 0)).records == RECORDS


async def test_an_unreadable_index_does_not_stop_a_start(
    sealed: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await sealed.crash()
    index = sealed.segments()[0].with_suffix(".idx")
    usual: Any = Path.open
    failures = [errno.EIO]

    def failing(path: Path, *arguments: object, **named: object) -> object:
        if path == index and failures:
            raise OSError(failures.pop(), "no")
        return usual(path, *arguments, **named)

    monkeypatch.setattr(Path, "open", failing)
    await sealed.open()
    assert not failures
    assert sealed.reasons() == ["rebuilt: unreadable"]
    assert len(await sealed.payloads()) == RECORDS
