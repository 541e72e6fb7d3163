"""A scrub: reads sealed segments and verifies their checksums.

A run of frames has a checksum in the index, and the index has one of its own; so a flipped bit is
found before a reader needs the record, while copies elsewhere still exist. Nothing is repaired or
moved. Damage that was known when the segment was sealed is in no run, and is not reported again.
Invariant: bytes count as damaged only after two reads, and records of whole frames never count as
damaged. A file that retention removes meanwhile is no damage. Reads are bounded, and off the event
loop.
"""

import asyncio
import errno
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import xxhash

from dss_core.progress import Range, Ranges, complement, normalised
from dssd.limits import READ_SPAN_BYTES_MAX
from dssd.log.recovery import judge_segment
from dssd.log.segment.file import (
    HEADER_BYTES,
    BadSegmentHeader,
    SegmentId,
    SegmentPaths,
    check_header,
)
from dssd.log.segment.frame_scan import FoundFrame, scan_bytes
from dssd.log.segment.index_file import BadIndex
from dssd.log.segment.rows import row_id
from dssd.log.segment.run_index import Run
from dssd.store.paging import scan_all
from dssd.store.port import Store
from dssd.store.rows import SegmentRow

Pace = Callable[[int], Awaitable[None]]
"""Waits before so many bytes are read, to keep the pace."""


@dataclass(slots=True)
class Scrubbed:
    """The findings in a segment."""

    path: Path
    bytes: int = 0
    """How many bytes were read."""
    damaged: dict[int, list[Range]] = field(default_factory=dict)
    """Offsets that cannot be read, by partition."""
    trouble: str = ""
    """The fault of the file or its index as a whole."""

    @property
    def is_sound(self) -> bool:
        """Whether nothing was found."""
        return not self.damaged and not self.trouble


class _Placed(NamedTuple):
    partition: int
    run: Run


async def scrubbed(
    paths: SegmentPaths, store: Store, storage_topic_id: int, pace: Pace
) -> AsyncGenerator[Scrubbed, None]:
    """Every sealed segment of a storage topic, one after the other."""
    rows = [found.row for found in await scan_all(store, SegmentRow, (storage_topic_id,))]
    for row in rows:
        if row.state == "active":
            continue
        found = await _of_segment(paths, row_id(row), pace)
        if found.is_sound or await store.read(SegmentRow, tuple(row_id(row))) is not None:
            yield found


async def _of_segment(paths: SegmentPaths, segment: SegmentId, pace: Pace) -> Scrubbed:
    found = Scrubbed(paths.segment(segment))
    try:
        placed = await asyncio.to_thread(_runs_of, paths, segment)
        fd = os.open(found.path, os.O_RDONLY | os.O_CLOEXEC)
    except BadIndex as bad:
        found.trouble = f"its index: {bad}"
        return found
    except FileNotFoundError:
        found.trouble = "the file is missing"
        return found
    try:
        found.trouble = await asyncio.to_thread(_header_trouble, fd, segment)
        for batch in _batches(placed):
            size_bytes = sum(each.run.length for each in batch)
            await pace(size_bytes)
            damaged = await asyncio.to_thread(_damaged_in, fd, segment, batch)
            for partition, ranges in damaged:
                found.damaged.setdefault(partition, []).extend(ranges)
            found.bytes += size_bytes
    finally:
        os.close(fd)
    return found


def _runs_of(paths: SegmentPaths, segment: SegmentId) -> list[_Placed]:
    """All runs, in the order of the file."""
    summary = judge_segment.load_summary(paths, segment)
    runs = judge_segment.load_runs(paths, segment, summary)
    placed = [
        _Placed(partition, run) for partition, own in runs.items() for run in own.slice(0, len(own))
    ]
    return sorted(placed, key=lambda each: each.run.position)


def _header_trouble(fd: int, segment: SegmentId) -> str:
    try:
        check_header(_read(fd, HEADER_BYTES, 0), segment)
    except BadSegmentHeader as bad:
        return f"its header: {bad}"
    return ""


def _batches(placed: Sequence[_Placed]) -> Iterator[list[_Placed]]:
    """Batches of adjacent runs in the file: at least one run each, up to a bound."""
    batch: list[_Placed] = []
    size_bytes = 0
    for each in placed:
        if batch and size_bytes + each.run.length > READ_SPAN_BYTES_MAX:
            yield batch
            batch, size_bytes = [], 0
        batch.append(each)
        size_bytes += each.run.length
    if batch:
        yield batch


def _damaged_in(fd: int, segment: SegmentId, batch: Sequence[_Placed]) -> list[tuple[int, Ranges]]:
    """Offsets whose bytes fail their checksum in two reads."""
    start = batch[0].run.position
    end = batch[-1].run.position + batch[-1].run.length
    content = _read(fd, end - start, start)
    suspect = [each for each in batch if not _is_whole(each.run, content, start)]
    found: list[tuple[int, Ranges]] = []
    for partition, run in suspect:
        again = _read(fd, run.length, run.position)
        if not _is_whole(run, again, run.position):
            found.append((partition, _lost(run, again, segment.storage_topic_id)))
    return found


def _lost(run: Run, content: bytes, storage_topic_id: int) -> Ranges:
    """The offsets of a damaged run that no whole frame of it holds; all, if none is missing."""
    headers = [
        each.header
        for each in scan_bytes(content, storage_topic_id)
        if isinstance(each, FoundFrame)
    ]
    whole = normalised((each.base_offset, each.base_offset + each.records) for each in headers)
    return complement(whole, run.base, run.end) or ((run.base, run.end),)


def _is_whole(run: Run, content: bytes, start: int) -> bool:
    at = run.position - start
    with memoryview(content) as view:
        piece = view[at : at + run.length]
        return len(piece) == run.length and xxhash.xxh3_64_intdigest(piece) == run.checksum


def _read(fd: int, size: int, position: int) -> bytes:
    """The file's bytes there; empty if the disk cannot read them."""
    try:
        return os.pread(fd, size, position)
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        return b""
