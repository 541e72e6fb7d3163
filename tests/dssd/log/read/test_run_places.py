"""Where runs are said to lie: without a gap, in their order, no more than was asked for."""

import asyncio
from typing import Any

from xxhash import xxh3_64_intdigest

from dss_core.ids import StreamId
from dssd.log.port import FileRuns
from dssd.log.segment.run_index import Run

Bench = Any
STREAM = StreamId(7, 0)


async def places(bench: Bench, start: int, end: int, runs_max: int = 100) -> list[FileRuns]:
    found: list[FileRuns] = await bench.log.run_places(STREAM, start, end, runs_max=runs_max)
    return found


def runs(found: list[FileRuns]) -> list[Run]:
    return [run for each in found for run in each.runs]


async def test_the_bytes_of_a_run_are_where_it_is_told(bench: Bench) -> None:
    for number in range(4):
        await bench.put(b"%d" % number)
        await bench.put(b"other", partition=1)
    [file] = await places(bench, 0, 4)
    assert [(run.base, run.end) for run in file.runs] == [(at, at + 1) for at in range(4)]
    content = await asyncio.to_thread(file.path.read_bytes)
    for run in file.runs:
        assert xxh3_64_intdigest(content[run.position :][: run.length]) == run.checksum


async def test_the_first_run_holds_the_start_and_the_last_one_the_end(bench: Bench) -> None:
    for _ in range(3):
        await bench.put(b"a", b"b", b"c")
        await bench.put(b"other", partition=1)
    assert [(run.base, run.end) for run in runs(await places(bench, 4, 5))] == [(3, 6)]
    assert [run.base for run in runs(await places(bench, 2, 4))] == [0, 3]
    assert await places(bench, 9, 12) == []
    assert await places(bench, 4, 4) == []


async def test_an_answer_ends_with_as_many_runs_as_were_asked_for(bench: Bench) -> None:
    for _ in range(4):
        await bench.put(b"a")
        await bench.put(b"other", partition=1)
        await bench.log.roll(STREAM.storage_topic_id)
    assert [run.base for run in runs(await places(bench, 0, 4, runs_max=3))] == [0, 1, 2]
    assert len(await places(bench, 0, 4)) == 4


async def test_nothing_is_told_of_what_was_trimmed(bench: Bench) -> None:
    for _ in range(4):
        await bench.put(b"a")
        await bench.put(b"other", partition=1)
    await bench.log.trim(STREAM, 2)
    assert await places(bench, 1, 4) == []
    assert [run.base for run in runs(await places(bench, 2, 4))] == [2, 3]
