from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dss_core.ids import StreamId
from dssd.limits import READ_GAP_BYTES_MAX, READ_SPAN_BYTES_MAX
from dssd.log.read.file_reader import FileReader
from dssd.log.read.joined_reads import joined_read_end
from dssd.log.segment.run_index import Run
from dssd.log.settings import LogSettings

Bench = Any
ROOMY = 1 << 30


def placed(*gaps: int, length: int = 100) -> list[Run]:
    """Runs of ten records, with the given gaps in bytes between them."""
    runs: list[Run] = []
    position = 64
    for number, gap in enumerate(gaps):
        position += gap
        runs.append(Run(number * 10, number * 10 + 10, position, length, 0, 0))
        position += length
    return runs


def behind(runs: list[Run], first: int = 0, room: int = ROOMY, below: int | None = None) -> int:
    return joined_read_end(runs, first, room_bytes=room, below=below)


def test_runs_that_lie_near_to_each_other_are_read_together() -> None:
    runs = placed(0, 0, READ_GAP_BYTES_MAX, 5)
    assert [behind(runs, first) for first in range(4)] == [4] * 4


def test_a_run_that_lies_too_far_away_is_read_alone() -> None:
    runs = placed(0, 50, READ_GAP_BYTES_MAX + 1, 50)
    assert [behind(runs, first) for first in range(4)] == [2, 2, 4, 4]


def test_what_is_read_together_is_bounded() -> None:
    length = READ_SPAN_BYTES_MAX // 4
    assert behind(placed(*[0] * 8, length=length)) == 4
    assert behind(placed(*[1] * 8, length=length)) == 3
    assert behind(placed(*[0] * 8, length=READ_SPAN_BYTES_MAX * 2)) == 1


def test_joined_runs_fit_into_the_room_but_the_first_is_always_read() -> None:
    runs = placed(0, 10, 10, 10)
    assert [behind(runs, room=room) for room in (1, 199, 200, 399, 400)] == [1, 1, 2, 3, 4]


def test_lost_records_end_a_joined_read() -> None:
    runs = placed(0, 0, 0)
    runs[2] = runs[2]._replace(base=21)
    assert behind(runs) == 2


def test_runs_at_or_above_the_given_offset_are_not_read() -> None:
    runs = placed(0, 0, 0, 0)
    assert [behind(runs, below=below) for below in (0, 19, 20, 21, 99)] == [1, 2, 2, 3, 4]


async def test_runs_of_a_stream_among_others_are_read_at_once(
    make_bench: Callable[[LogSettings], Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = await interleaved(make_bench)
    reads: list[int] = []
    view = FileReader.view

    async def counted(self: FileReader, path: Path, position: int, size: int) -> memoryview:
        reads.append(size)
        return await view(self, path, position, size)

    monkeypatch.setattr(FileReader, "view", counted)
    chunk = await bench.log.read(StreamId(7, 1), 0, bytes_max=1 << 20)
    assert (chunk.records, chunk.base, chunk.mask, chunk.damaged) == (20, 0, (), ())
    assert len(reads) == 1
    assert await bench.payloads(1) == {number: b"1 %d" % number for number in range(20)}


@pytest.mark.parametrize("bad", [0, 7, 19])
async def test_a_damaged_run_costs_the_runs_read_with_it_nothing(
    make_bench: Callable[[LogSettings], Bench], bad: int
) -> None:
    bench = await interleaved(make_bench)
    (path,) = bench.directory.glob("*.seg")
    content = bytearray(path.read_bytes())
    content[content.index(b"1 %d" % bad)] ^= 1
    path.write_bytes(content)
    kept = {number: b"1 %d" % number for number in range(20) if number != bad}
    assert await bench.payloads(1) == kept
    assert await bench.damaged(1) == [(bad, bad + 1)]


async def interleaved(make_bench: Callable[[LogSettings], Bench]) -> Bench:
    """Three streams whose runs of one record alternate in the file; the tail cache is empty."""
    bench = make_bench(LogSettings(tail_cache_bytes_max=0))
    await bench.prepare()
    await bench.open()
    for number in range(20):
        for partition in range(3):
            await bench.put(b"%d %d" % (partition, number), partition=partition)
    return bench
