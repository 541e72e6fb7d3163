"""One flipped bit anywhere, then a kill and a start: what it may cost, and what not.

Two producers write to two streams over two files. Whatever bit flips: all other records stay
readable, no stream's end jumps over a frame that is there, no offset that was given is given
again, and a repeat is answered as stored only if its record can be read.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from dss_core.errors import DssError
from dss_core.frame import headers_of
from dss_core.ids import StreamId
from dssd.log.port import Appended
from dssd.log.segment.file import HEADER_BYTES
from dssd.store.memory import MemoryStore
from dssd.store.port import Delete, Put
from dssd.store.rows import SegmentRow
from support.proof_share import share

Bench = Any
MakeFrame = Callable[..., bytes]
PRODUCERS = (b"first  producer!", b"second producer!")
PARTITIONS = (0, 1)
FLIPS = share(12, 800)


@dataclass(frozen=True)
class Sent:
    """A frame, and the payload and offset of its one record."""

    partition: int
    frame: bytes
    payload: bytes
    offset: int


async def write(bench: Bench, make_frame: MakeFrame) -> list[Sent]:
    """Three frames a producer and stream, then a roll, then two more."""
    sent: list[Sent] = []
    for sequence in range(5):
        if sequence == 3:
            await bench.roll()
        for producer in PRODUCERS:
            for partition in PARTITIONS:
                payload = b"%s %d %d" % (producer, partition, sequence)
                built = make_frame(
                    payload, partition=partition, producer=producer, sequence=sequence
                )
                stored = await bench.append(built, partition=partition)
                assert isinstance(stored, Appended)
                sent.append(Sent(partition, built, payload, stored.base_offset))
    await bench.crash()
    return sent


async def set_scene(bench: Bench, scene: str, watermark: str) -> Path:
    """Make the files what a kill may leave; returns the one to flip a bit in."""
    files: list[Path] = bench.segments()
    first, last = files
    rows = await bench.rows()
    if watermark == "at the end":
        rows[1] = replace(rows[1], watermark_bytes=last.stat().st_size)
    if scene == "mid-roll":
        rows[0] = replace(rows[0], state="active", watermark_bytes=HEADER_BYTES)
    if scene in ("mid-roll", "index missing"):
        first.with_suffix(".idx").unlink()
    for snapshot in bench.directory.glob("*.prod"):
        snapshot.unlink()
    await bench.store.commit([Put(row) for row in rows])
    return last if scene == "active" else first


def hit_by(path: Path, position: int, sent: list[Sent]) -> set[bytes]:
    """The payloads in the frame that holds a byte."""
    content = path.read_bytes()
    for at, header in headers_of(content[HEADER_BYTES:]):
        start = HEADER_BYTES + at
        if start <= position < start + header.frame_bytes:
            frame = content[start : start + header.frame_bytes]
            return {one.payload for one in sent if one.payload in frame}
    return set()


class Disk:
    """All files and rows as they are now, to be put back."""

    def __init__(self, directory: Path, rows: list[SegmentRow]) -> None:
        self._directory = directory
        self._rows = rows
        self._files = {path: path.read_bytes() for path in directory.iterdir() if path.is_file()}

    async def put_back(self, store: MemoryStore) -> None:
        for path in self._directory.iterdir():
            if path.is_file():
                path.unlink()
        for path, content in self._files.items():
            path.write_bytes(content)
        found = [one.row for one in await store.scan(SegmentRow)]
        writes: list[Put | Delete] = [
            Delete(SegmentRow, (row.storage_topic_id, row.segment_id)) for row in found
        ]
        await store.commit(writes + [Put(row) for row in self._rows])


@pytest.mark.parametrize("watermark", ["behind", "at the end"])
@pytest.mark.parametrize("scene", ["active", "mid-roll", "index missing"])
async def test_one_flipped_bit_costs_the_record_that_it_hit(
    bench: Bench, make_frame: MakeFrame, scene: str, watermark: str
) -> None:
    sent = await write(bench, make_frame)
    target = await set_scene(bench, scene, watermark)
    disk = Disk(bench.directory, await bench.rows())
    chance = random.Random(f"{scene} {watermark}")
    for position in sorted(chance.sample(range(target.stat().st_size), FLIPS)):
        await disk.put_back(bench.store)
        hit = hit_by(target, position, sent)
        content = bytearray(target.read_bytes())
        content[position] ^= 1 << chance.randrange(8)
        target.write_bytes(content)
        await bench.open()
        ends = await check_reads(bench, sent, hit)
        if scene != "active":
            assert ends == [10, 10], "frames in the next file prove where the streams stand"
        await check_repeats(bench, sent)
        ends = await check_reads(bench, sent, hit)
        await bench.reopen(crash=True)
        assert await check_reads(bench, sent, hit) == ends
        await bench.crash()
    await bench.open()


async def check_reads(bench: Bench, sent: list[Sent], hit: set[bytes]) -> list[int]:
    """Assert that all other records are readable at their offsets; returns the ends."""
    ends = []
    for partition in PARTITIONS:
        found = await bench.payloads(partition)
        own = [one for one in sent if one.partition == partition]
        expected = {one.offset: one.payload for one in own if one.payload not in hit}
        assert expected.items() <= found.items()
        assert set(found.values()) <= {one.payload for one in own}
        ends.append(bench.log.bounds(StreamId(7, partition)).end)
        assert ends[-1] > max(expected)
    return ends


async def check_repeats(bench: Bench, sent: list[Sent]) -> None:
    for one in sent:
        again = await bench.append(one.frame, partition=one.partition)
        assert isinstance(again, Appended | DssError)
        if isinstance(again, Appended):
            assert (await bench.payloads(one.partition))[again.base_offset] == one.payload
