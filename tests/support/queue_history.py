"""The queues of a group by the files of a daemon that ended: where each record went.

Tests of operations judge by the frames of all segments, the stored progress and the stored
operations, never by an answer of the daemon. Invariant: the daemon has ended in order, so its files
are complete and nothing is still to be written; and it has trimmed no queue.
"""

import json
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from dss_core.decode import decode
from dss_core.frame import headers_of
from dss_core.lane import DEAD, MAIN, RETRY, LaneEntry
from dss_core.progress import Progress
from dssd.data_directory import STORE_NAME
from dssd.leaders.progress_columns import progress_of
from dssd.log.segment.file import HEADER_BYTES
from dssd.queues.entries import lane_of
from dssd.store.paging import scan_all
from dssd.store.rows import GroupRow, OperationRow, ProgressRow, StorageTopicRow, TopicRow
from dssd.store.sqlite import SqliteStore

LEVELS = (MAIN, RETRY, DEAD)


class Place(NamedTuple):
    """Where a record lay: in a stream, or in a queue of it."""

    level: int
    ordinal: int
    partition: int
    offset: int

    @property
    def queue(self) -> "Queue":
        """The place without its offset."""
        return self[:3]


Queue = tuple[int, int, int]
"""A level, an ordinal and a partition."""


class Found(NamedTuple):
    """A record of a stream or queue."""

    place: Place
    key: bytes | None
    payload: bytes
    entry: LaneEntry | None
    """Of a queue."""

    @property
    def source(self) -> Place | None:
        """The place of the record that it was made of."""
        entry = self.entry
        if entry is None:
            return None
        ordinal, partition = self.place.ordinal, self.place.partition
        if entry.source_ordinal is not None:
            ordinal, partition = entry.source_ordinal, entry.source_partition
        return Place(entry.source_level, ordinal, partition, entry.source_offset)


@dataclass(frozen=True, slots=True)
class Files:
    """The contents of a data directory for a group and the one topic that it reads."""

    data: Path
    queues: dict[int, tuple[int, int]]
    """By storage topic, also of queues: a level and an ordinal."""
    progress: dict[Queue, Progress]
    operations: tuple[OperationRow, ...]

    @classmethod
    async def read(cls, data: Path, group: str, topic: str) -> "Files":
        """Read the store."""
        with tempfile.TemporaryDirectory() as copied:
            _copy_store(data, Path(copied))
            store = await SqliteStore.open(Path(copied) / STORE_NAME)
            try:
                groups = [each.row for each in await scan_all(store, GroupRow)]
                [group_id] = [each.group_id for each in groups if each.name == group]
                topics = [each.row for each in await scan_all(store, TopicRow)]
                parts = [each.row for each in await scan_all(store, StorageTopicRow)]
                progress = [each.row for each in await scan_all(store, ProgressRow, (group_id,))]
                operations = [each.row for each in await scan_all(store, OperationRow)]
            finally:
                await store.close()
        [main] = [each.topic_id for each in topics if each.name == topic]
        own = {main: MAIN} | {
            each.topic_id: each.level
            for each in topics
            if (each.group_id, each.main_topic_id) == (group_id, main)
        }
        queues = {
            each.storage_topic_id: (own[each.topic_id], each.ordinal)
            for each in parts
            if each.topic_id in own
        }
        known = {
            (*queues[each.storage_topic_id], each.partition): progress_of(each)
            for each in progress
            if each.storage_topic_id in queues
        }
        mine = tuple(each for each in operations if each.group_id == group_id)
        return cls(data, queues, known, mine)

    def records(self) -> Iterator[Found]:
        """All records, in the order of each stream."""
        for path in sorted((self.data / "log").glob("*.seg")):
            frames = path.read_bytes()[HEADER_BYTES:]
            for at, header in headers_of(frames):
                named = self.queues.get(header.storage_topic_id)
                if named is not None:
                    lane = *named, header.partition
                    yield from _records(lane, frames[at : at + header.frame_bytes])


def _copy_store(data: Path, target: Path) -> None:
    for path in data.glob(f"{STORE_NAME}*"):
        shutil.copy(path, target)


def _records(queue: Queue, frame: bytes) -> Iterator[Found]:
    batch = decode(frame)
    columns = batch.offsets, batch.keys, batch.payloads, batch.headers
    for offset, key, payload, headers in zip(*columns, strict=True):
        entry = lane_of(headers) if queue[0] else None
        yield Found(Place(*queue, offset), key, payload, entry)


@dataclass(slots=True)
class QueueHistory:
    """The places of each record. Built by `history_of`."""

    files: Files
    records: dict[Place, Found] = field(default_factory=dict)
    made_of: defaultdict[Place, list[Place]] = field(default_factory=lambda: defaultdict(list))
    """Entries, by the places of the records that they were made of."""

    def origins(self) -> Iterator[Found]:
        """The places of the original records."""
        return (each for each in self.records.values() if each.entry is None)

    def way(self, place: Place) -> list[Place]:
        """The places from there to where the record is now."""
        way = [place]
        while after := self.made_of.get(way[-1]):
            way.append(after[0])
        return way

    def is_open(self, place: Place) -> bool:
        """Whether it waits there: otherwise it has moved on or was acknowledged."""
        progress = self.files.progress.get(place.queue, Progress(0))
        return not progress.is_acked(place.offset)

    def operation(self, number: int) -> OperationRow:
        """A stored operation."""
        [found] = [each for each in self.files.operations if each.number == number]
        return found

    def redelivered(self) -> Counter[Place]:
        """How often operators had a record delivered once more."""
        again: Counter[Place] = Counter()
        for row in self.files.operations:
            change = json.loads(row.change)
            if change.get("change") == "RedeliverRecords":
                for span in (change, *change["more"]):
                    _, ordinal, partition = span["stream"].rsplit("/", 2)
                    offsets = range(span["offset"], span["offset"] + span["count"])
                    again.update(Place(MAIN, int(ordinal), int(partition), at) for at in offsets)
        return again

    def named_by(self, row: OperationRow, level: int) -> set[Place]:
        """The entries of queues that an operation named."""
        lanes = json.loads(row.change).get("lanes", ())
        named: set[Place] = set()
        for lane in lanes:
            _, ordinal, partition = lane["stream"].rsplit("/", 2)
            for start, end in lane["ranges"]:
                at = level, int(ordinal), int(partition)
                named |= {Place(*at, offset) for offset in range(start, end)}
        return named

    def wrong(self) -> list[str]:
        """Breaches of the rules of any history: a record in two places or in none, and entries of
        records that the log does not have. A record that operators had delivered once more may fail
        once more."""
        again = self.redelivered()
        wrong = [
            f"{source} became {after}, and was to come again {again[source]} times"
            for source, after in self.made_of.items()
            if len(after) > 1 + again[source]
        ]
        wrong += [f"{source} is not there" for source in self.made_of if source not in self.records]
        for origin in self.origins():
            *left, last = self.way(origin.place)
            wrong += [f"{each} waits, and is at {last}" for each in left if self.is_open(each)]
            found = self.records[last].payload
            if found != origin.payload:
                wrong.append(f"{origin.payload!r} became {found!r} at {last}")
        return wrong


async def history_of(data: Path, group: str, topic: str) -> QueueHistory:
    """The history in the files of a daemon that ended in order."""
    history = QueueHistory(await Files.read(data, group, topic))
    for each in history.files.records():
        if each.place in history.records:
            # The whole frames behind a torn end of a file are in the next file as well.
            assert history.records[each.place] == each
            continue
        history.records[each.place] = each
        if each.source is not None:
            history.made_of[each.source].append(each.place)
    return history
