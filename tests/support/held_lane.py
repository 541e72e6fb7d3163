"""A lane over a real log, with what its holder can do.

Appends may be held back, and reads may fail; everything else is real.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.decode import Row, decode
from dss_core.errors import LogUnreadable
from dss_core.lane import ENTRIES, MAIN, RETRY
from dss_core.progress import Ranges
from dss_core.rows_layout import Headers
from dssd.log.port import Answered, Append, Appended
from dssd.log.segment_log import SegmentLog
from dssd.machines.delivery.events import (
    EntriesRead,
    Entry,
    LaneOpened,
    Move,
    Moved,
    MovePiece,
    OpenLane,
)
from dssd.queues.lane import Failed, Lane
from dssd.queues.moving import Parts, move
from dssd.queues.opening import open_lane
from dssd.queues.writers import QueueWriters
from support.log_in_process import Shelf, opened_shelf

PARTITION = 1


class HeldLog:
    """The log, except that appends may be held back, and reads may fail."""

    def __init__(self, log: SegmentLog) -> None:
        self._log = log
        self.reads = 0
        self.unreadable = 0
        """This many reads fail."""
        self.begun_bytes: list[int] = []
        """Of each append."""
        self._held: list[partial[None]] | None = None
        self._begun = asyncio.Event()
        self._read = asyncio.Event()

    def __getattr__(self, name: str) -> object:
        return getattr(self._log, name)

    def begin_append(self, appends: Sequence[Append], answered: Answered) -> None:
        """Hold the append back, or begin it."""
        self.begun_bytes.append(sum(len(each.frame) for each in appends))
        begin = partial(self._log.begin_append, appends, answered)
        if self._held is None:
            begin()
        else:
            self._held.append(begin)
            self._begun.set()

    def hold(self) -> asyncio.Event:
        """Hold appends back from now on; returns an event that is set at the first."""
        self._held = []
        return self._begun

    def go_on(self) -> None:
        """Begin the appends that are held back."""
        held, self._held = self._held or [], None
        for begin in held:
            begin()

    async def next_read(self) -> None:
        """Wait until a read has begun."""
        self._read.clear()
        await self._read.wait()

    async def read(self, *given: object, **named: object) -> object:
        """Fail, or read."""
        self.reads += 1
        self._read.set()
        if self.unreadable:
            self.unreadable -= 1
            raise LogUnreadable(path="a file", reason="it is torn")
        return await self._log.read(*given, **named)  # type: ignore[arg-type]


class Told:
    """Implements `dssd.queues.lane.Trouble`."""

    def __init__(self) -> None:
        self.passes = True
        self.told: list[tuple[str, int]] = []
        self.failures: list[Failed] = []
        self.damage: list[tuple[int, Ranges]] = []

    def unreadable(self, level: int, _error: LogUnreadable) -> None:
        self.told.append(("unreadable", level))

    def readable(self, level: int) -> None:
        self.told.append(("readable", level))

    def failed(self, failed: Failed) -> None:
        self.failures.append(failed)

    async def damaged(self, level: int, damaged: Ranges) -> bool:
        self.damage.append((level, damaged))
        return self.passes


class Holder:
    """Lanes over a log; epochs tell who holds a lane."""

    def __init__(self, shelf: Shelf, streams: Lane) -> None:
        self.shelf = shelf
        self.levels = streams.levels
        self.log = HeldLog(shelf.log)
        self.writers = QueueWriters(self.log)  # type: ignore[arg-type]
        self.parts = Parts(self.log, self.writers, shelf.clock)  # type: ignore[arg-type]
        self.trouble = Told()
        self._lane = streams
        self.is_ordered = False

    def lane(self, epoch: int = 1) -> Lane:
        return Lane(self.levels, self._lane.ordinal, epoch, 7, "client", self.is_ordered)

    async def publish(
        self,
        *payloads: bytes,
        headers: Headers = (),
        key: bytes | None = b"key",
    ) -> Appended:
        """Append one frame to the stream itself."""
        count = len(payloads)
        columns = Columns(list(payloads), [key] * count, "orders/eu", [headers] * count, 5)
        frame = build_frame(
            columns, partition=PARTITION, producer_id=bytes(16), sequence=0, limits=ENTRIES
        )
        main = self.levels[MAIN]
        (stored,) = await self.shelf.log.append([Append(main, frame, main.storage_topic_id)])
        assert isinstance(stored, Appended), stored
        return stored

    async def move(self, *pieces: MovePiece, epoch: int = 1) -> Moved:
        return await move(Move(4, pieces), self.lane(epoch), self.parts, self.trouble)

    async def opened(
        self, epoch: int = 1, *, retry_from: int = 0, dead_from: int = 0
    ) -> list[EntriesRead | LaneOpened]:
        _, retry, dead = self.levels
        asked = OpenLane(4, self.levels[MAIN], epoch, retry, retry_from, dead, dead_from)
        return [
            told
            async for told in open_lane(
                asked, self.lane(asked.grant_epoch), self.parts, self.trouble
            )
        ]

    async def rows(self, level: int) -> list[Row]:
        """The records of a level."""
        rows: list[Row] = []
        at, end = self.shelf.log.span(self.levels[level])
        while at < end:
            chunk = await self.shelf.log.read(self.levels[level], at, bytes_max=1 << 20)
            rows += [row for part in decode(chunk.frames, chunk.mask).rows() for row in part]
            at = chunk.next
        return rows


def piece(start: int, end: int, **named: object) -> MovePiece:
    """A first failure of records of the stream itself."""
    usual = MovePiece(MAIN, start, end, RETRY, 1, 9_000, "refused")
    return usual._replace(**named)  # type: ignore[arg-type]


def entries_of(told: Sequence[EntriesRead | LaneOpened], level: int) -> list[Entry]:
    """The entries of a queue that were reported."""
    reads = [each for each in told if isinstance(each, EntriesRead) and each.level == level]
    return [entry for read in reads for entry in read.entries]


@asynccontextmanager
async def held_lane(directory: Path) -> AsyncIterator[Holder]:
    """The second partition of a topic that has queues."""
    async with opened_shelf(directory) as shelf:
        names = ("orders", "orders.retry", "orders.dead")
        topics = [await shelf.topic(name, 2) for name in names]
        main, retry, dead = (topic.producing.streams()[PARTITION] for topic in topics)
        yield Holder(shelf, Lane((main, retry, dead), 0, 1, 7, "client"))
