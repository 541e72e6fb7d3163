"""A real log on a real directory with a catalogue over it, without a server."""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.ids import StreamId
from dssd.clock import Clock
from dssd.log.port import Append, Appended
from dssd.log.segment_log import SegmentLog
from dssd.store.memory import MemoryStore
from dssd.store.paging import scan_all
from dssd.store.port import Store
from dssd.store.rows import StorageTopicRow
from dssd.topics.catalogue import Catalogue, NewTopic, Topic


class SetClock(Clock):
    """The machine's clock, which tests may set forward."""

    def __init__(self) -> None:
        self.ahead_us = 0

    def wall_us(self) -> int:
        """The machine's time plus the offset that tests set."""
        return super().wall_us() + self.ahead_us


class Shelf:
    """A catalogue over a log, and ways to fill them. It acts as one producer."""

    def __init__(self, catalogue: Catalogue, log: SegmentLog) -> None:
        self.catalogue = catalogue
        self.log = log
        self.clock = SetClock()
        self.producer_id = os.urandom(16)
        self._sequences: dict[StreamId, int] = {}

    async def topic(self, name: str, partitions: int = 1, *patterns: str) -> Topic:
        """A new topic."""
        return await self.catalogue.create(NewTopic(name, partitions, patterns=patterns))

    def frame(
        self, topic: Topic, payloads: Sequence[bytes], *, partition: int = 0, subject: str = ""
    ) -> bytes:
        """The next frame of this producer for the partition."""
        stream = topic.producing.streams()[partition]
        sequence = self._sequences.get(stream, 0)
        self._sequences[stream] = sequence + 1
        columns = Columns(list(payloads), None, subject or topic.name, None, 1)
        return build_frame(
            columns, partition=partition, producer_id=self.producer_id, sequence=sequence
        )

    async def store(
        self, topic: Topic, *payloads: bytes, partition: int = 0, subject: str = ""
    ) -> Appended:
        """Store the next frame; returns where."""
        frame = self.frame(topic, payloads, partition=partition, subject=subject)
        stream = topic.producing.streams()[partition]
        (result,) = await self.log.append([Append(stream, frame, topic.topic_epoch)])
        assert isinstance(result, Appended)
        return result


@asynccontextmanager
async def opened_shelf(directory: Path, store: Store | None = None) -> AsyncIterator[Shelf]:
    """A shelf in an empty directory, or in one left by an earlier shelf, with its store, which
    stays open."""

    def on_failure(error: BaseException) -> None:
        raise AssertionError(error)

    used = store or MemoryStore()
    rows = [found.row for found in await scan_all(used, StorageTopicRow)]
    log = await SegmentLog.open(directory, used, storage_topics=rows, on_failure=on_failure)
    yield Shelf(await Catalogue.open(used, log), log)
    await log.close()
    if store is None:
        await used.close()
