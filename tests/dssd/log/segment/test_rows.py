"""The removal of segments, and a process that ends in the middle of it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from dssd.log.recovery.judge_segment import write_index
from dssd.log.segment.file import HEADER_BYTES, SegmentPaths
from dssd.log.segment.rows import remove_segments, row_id
from dssd.store.memory import MemoryStore
from dssd.store.port import Precondition, Put, Write
from dssd.store.rows import SegmentRow, StorageTopicRow

Bench = Any


class Died(Exception):
    """The process ended."""


class DyingStore(MemoryStore):
    async def commit(
        self, writes: Sequence[Write], preconditions: Sequence[Precondition] = ()
    ) -> list[int]:
        raise Died


async def give_up_first(bench: Bench, *, kept_from: int) -> None:
    """Let the process die after the files of the first segment were removed, before its row."""
    [first, *_] = await bench.rows()
    await bench.crash()
    [topic] = [found.row for found in await bench.store.scan(StorageTopicRow)]
    await bench.store.commit([Put(replace(topic, starts=f"{kept_from},0,0,0"))])
    with pytest.raises(Died):
        await remove_segments(SegmentPaths(bench.directory), DyingStore(), [row_id(first)])
    await bench.open()
    assert first not in await bench.rows()
    assert len(list(bench.directory.glob("*.idx"))) == len(await bench.rows()) - 1


async def test_a_start_finishes_a_removal_and_reports_no_damage(bench: Bench) -> None:
    await bench.put(b"given up")
    await bench.roll()
    await bench.put(b"kept")
    await bench.roll()
    await give_up_first(bench, kept_from=1)
    assert bench.reasons() == []
    assert await bench.payloads(offset=1) == {1: b"kept"}


async def test_a_start_finishes_the_removal_of_a_segment_without_a_frame(bench: Bench) -> None:
    """Earlier versions left some."""
    empty = SegmentRow(7, await bench.store.next_id(), "sealed", HEADER_BYTES, 0)
    await bench.store.commit([Put(empty)])
    write_index(SegmentPaths(bench.directory), row_id(empty), HEADER_BYTES, {}, 0)
    await bench.put(b"kept")
    await give_up_first(bench, kept_from=0)
    assert bench.reasons() == []
    assert await bench.payloads() == {0: b"kept"}
