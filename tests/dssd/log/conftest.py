"""Frames, and logs over a memory store that can be closed, killed and opened again."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import pytest

from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.decode import decode
from dss_core.ids import StreamId
from dssd.log.port import Append, Appended
from dssd.log.segment.file import SEGMENT_SUFFIX
from dssd.log.segment_log import SegmentLog
from dssd.log.settings import LogSettings
from dssd.store.memory import MemoryStore
from dssd.store.port import Put
from dssd.store.rows import SegmentRow, StorageTopicRow

TOPIC = 7
PARTITIONS = 4
PRODUCER = b"producer of test"


def frame(
    *payloads: bytes,
    partition: int = 0,
    producer: bytes = PRODUCER,
    sequence: int = 0,
    subjects: str | list[str] = "orders",
) -> bytes:
    columns = Columns(payloads=list(payloads), subjects=subjects)
    return build_frame(columns, partition=partition, producer_id=producer, sequence=sequence)


# A read ends early when its time on the loop is up; answers must not depend on the machine.
READ_LOOP_US = 60_000_000


@dataclass
class Bench:
    """A log in a directory, its store, and the clock that it sees."""

    directory: Path
    store: MemoryStore = field(default_factory=MemoryStore)
    settings: LogSettings = field(default_factory=lambda: LogSettings(read_loop_us=READ_LOOP_US))
    now_us: int = 1_000_000
    """By the wall clock."""
    passed_us: int = 0
    """By the monotonic one."""
    failures: list[BaseException] = field(default_factory=list)
    failed: asyncio.Event = field(default_factory=asyncio.Event)
    sequences: dict[tuple[int, bytes], int] = field(default_factory=dict)
    ends: str | None = None
    reached: dict[int, dict[int, int]] = field(default_factory=dict)
    asked: int = 0
    """How often the log asked how far it was read."""
    log: SegmentLog = field(init=False)

    async def prepare(self) -> None:
        self._loop = asyncio.get_running_loop()
        row = StorageTopicRow(1, 0, TOPIC, PARTITIONS, 1, None, ",".join("0" * PARTITIONS))
        await self.store.commit([Put(row)])

    async def open(self) -> SegmentLog:
        rows = [found.row for found in await self.store.scan(StorageTopicRow)]
        self.log = await SegmentLog.open(
            self.directory,
            self.store,
            storage_topics=rows,
            ask_reached=self._ask_reached,
            settings=self.settings,
            on_failure=self._failed,
            wall_us=lambda: self.now_us,
            monotonic_us=lambda: self.passed_us,
        )
        return self.log

    async def _ask_reached(self) -> dict[int, dict[int, int]]:
        self.asked += 1
        return self.reached

    def _failed(self, failure: BaseException) -> None:
        self.failures.append(failure)
        self._loop.call_soon_threadsafe(self.failed.set)

    async def crash(self) -> None:
        """What a kill leaves: all written bytes, no watermark, no clean marker."""
        await self.log._housekeeper.abandon()
        await self.log._writer.stop()
        self.log._files.close()
        self.log._closing = True

    async def lose_power(self, chance: Random | None = None) -> None:
        """Lose all or a random part of the unsynced bytes, then open again."""
        file = self.log._writer._topics[TOPIC].file
        synced, size = (0, 0) if file is None else (file.synced, file.size)
        await self.crash()
        if synced < size:
            kept = synced if chance is None else chance.randint(synced, size)
            os.truncate(self.segments()[-1], kept)
        await self.open()

    async def reopen(self, *, crash: bool = False) -> SegmentLog:
        if crash:
            await self.crash()
        else:
            await self.log.close()
        return await self.open()

    async def put(
        self,
        *payloads: bytes,
        partition: int = 0,
        subjects: str | list[str] = "orders",
        durability: str = "sync",
    ) -> Appended:
        """Append one frame with the next sequence of the test's producer."""
        sequence = self.sequences.get((partition, PRODUCER), -1) + 1
        self.sequences[partition, PRODUCER] = sequence
        built = frame(*payloads, partition=partition, sequence=sequence, subjects=subjects)
        result = await self.append(built, partition=partition, durability=durability)
        assert isinstance(result, Appended), result
        return result

    async def settle(self) -> None:
        """Wait for the jobs of the housekeeper that wait now."""
        await self.log._housekeeper.settle()

    async def promise(self, watermark: int) -> None:
        """Set the watermark of the last file."""
        row = (await self.rows())[-1]
        await self.store.commit([Put(replace(row, watermark_bytes=watermark))])

    async def roll(self) -> None:
        """Continue in a new segment."""
        assert await self.log.roll(TOPIC)

    async def seal(self) -> list[int]:
        """Seal the storage topic and its row; returns the ends of its streams."""
        async with self.log.sealing(TOPIC) as ends:
            (found,) = await self.store.scan(StorageTopicRow)
            written = ",".join(map(str, ends.offsets))
            await self.store.commit([Put(replace(found.row, ends=written))])
        return list(ends.offsets)

    async def append(
        self, built: bytes, *, partition: int = 0, durability: str = "sync"
    ) -> Appended | BaseException:
        stream = StreamId(TOPIC, partition)
        (result,) = await self.log.append([Append(stream, built, 1, durability)])
        return result

    async def payloads(self, partition: int = 0, offset: int = 0) -> dict[int, bytes]:
        """All payloads of the stream by offset, read to its end."""
        found: dict[int, bytes] = {}
        stream = StreamId(TOPIC, partition)
        end = self.log.bounds(stream).end
        while offset < end:
            chunk = await self.log.read(stream, offset, bytes_max=1 << 20)
            assert chunk.next > offset, "a read makes progress"
            if chunk.frames:
                batch = decode(chunk.frames, chunk.mask)
                found |= dict(zip(batch.offsets, batch.payloads, strict=True))
            offset = chunk.next
        return found

    async def damaged(self, partition: int = 0) -> list[tuple[int, int]]:
        stream = StreamId(TOPIC, partition)
        found: list[tuple[int, int]] = []
        offset = self.log.bounds(stream).start
        while offset < self.log.bounds(stream).end:
            chunk = await self.log.read(stream, offset, bytes_max=1 << 20)
            found += chunk.damaged
            offset = chunk.next
        return found

    def segments(self) -> list[Path]:
        return sorted(self.directory.glob("*" + SEGMENT_SUFFIX))

    def quarantine(self) -> list[Path]:
        folder = self.directory / "quarantine"
        return sorted(folder.iterdir()) if folder.exists() else []

    async def rows(self) -> list[SegmentRow]:
        return [found.row for found in await self.store.scan(SegmentRow)]

    def reasons(self) -> list[str]:
        return [reason for _, reason in self.log.quarantined()]


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    """A bench whose log is open."""
    made = Bench(tmp_path / "log")
    await made.prepare()
    await made.open()
    yield made
    if not made.failures:
        await made.log.close()


@pytest.fixture
async def make_bench(tmp_path: Path) -> AsyncIterator[Callable[[LogSettings], Bench]]:
    """Makes benches with other settings; the test opens them."""
    benches: list[Bench] = []

    def make(settings: LogSettings) -> Bench:
        benches.append(Bench(tmp_path / f"log{len(benches)}", settings=settings))
        return benches[-1]

    yield make
    for made in benches:
        if not made.failures:
            await made.log.close()


@pytest.fixture
def make_frame() -> Callable[..., bytes]:
    """Builds a frame of the test's producer."""
    return frame


@pytest.fixture
def run_log(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., object]:
    """Runs a story on a new log in a new event loop: for property tests."""

    def run(story: Callable[[Bench], Awaitable[object]], settings: LogSettings) -> object:
        async def whole() -> object:
            made = Bench(tmp_path_factory.mktemp("log"), settings=settings)
            await made.prepare()
            await made.open()
            try:
                return await story(made)
            finally:
                await made.log.close()

        return asyncio.run(whole())

    return run
