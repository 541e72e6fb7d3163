"""Moving records of a lane to its queues: read, append, and say what became of each.

Invariant: each record of a move gets one answer: its entry is durable, or the log no longer has the
record, or the record is where it was. The last is the answer whenever the outcome is unknown. What
is gathered is bounded; it is appended to both queues at once, so that one group commit takes it.
This module must not know why records are moved.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter

from dss_core.errors import DssError, FrameCorrupt, LogUnreadable, StreamNotFound
from dss_core.lane import DEAD, RETRY
from dss_core.progress import Ranges, clipped, normalised, without
from dssd.clock import Clock
from dssd.log.port import Append, Appended, Chunk, Log
from dssd.loop_yield import LoopTurn
from dssd.machines.delivery.events import Entry, Move, Moved, MovePiece
from dssd.queues.entries import Maker, NewEntry, cut, frames_of, stored
from dssd.queues.failures import failed_in
from dssd.queues.lane import Lane, Trouble
from dssd.queues.slices import decoded_slices
from dssd.queues.writers import QueueWriters

MOVE_GATHERED_BYTES = 4 << 20
"""Records that are gathered before they are appended; a full one fits several times."""


MOVE_GAP_OFFSETS = 256
"""Records of a move that lie no further apart are read together."""


MOVE_RECORD_BYTES = 2 << 10
"""How much is read for each record that is wanted, at first: what is larger is read again. Records
between them are read too, but not decoded."""


MOVE_READ_BYTES = 256 << 10
"""What is read at a time for a move: looking up the outcomes of a thousand small records takes a
few milliseconds without giving way."""


Stretch = list[MovePiece]
"""Pieces of one level that lie near each other, in order."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What work on queues uses."""

    log: Log
    writers: QueueWriters
    clock: Clock


async def move(asked: Move, lane: Lane, parts: Parts, trouble: Trouble) -> Moved:
    """Carry out a move; what is appended becomes durable also where this is cancelled."""
    async with parts.writers.room:
        moving = _Moving(lane, parts, trouble)
        for stretch in _stretches(asked.pieces):
            await moving.take(stretch)
        await moving.append()
    entries = sorted(moving.entries, key=itemgetter(0))
    await moving.turn.give_way()
    return Moved(asked.grant, tuple(entries), tuple(moving.lost), tuple(moving.failed))


class _Moving:
    """One move."""

    def __init__(self, lane: Lane, parts: Parts, trouble: Trouble) -> None:
        self.entries: list[tuple[int, Entry]] = []
        self.lost: list[tuple[int, int, int]] = []
        self.failed: list[MovePiece] = []
        self._lane = lane
        self._parts = parts
        self._trouble = trouble
        self._maker = Maker(lane, parts.clock.wall_ms())
        self._gathered: list[NewEntry] = []
        self._gathered_bytes = 0
        self._refused = False
        """An append was: no other is tried."""
        self.turn = LoopTurn()

    async def take(self, stretch: Stretch) -> None:
        """Gather the records of a stretch."""
        left = deque(stretch)
        while left:
            chunk = None if self._refused else await self._read(left)
            if chunk is None or chunk.next <= left[0].start:
                self.failed += left
                return
            await self._take_chunk(_taken(left, chunk.next), chunk)

    async def _read(self, left: deque[MovePiece]) -> Chunk | None:
        level, at = left[0].level, left[0].start
        bytes_max = min((left[-1].end - at) * MOVE_RECORD_BYTES, MOVE_READ_BYTES)
        try:
            chunk = await self._parts.log.read(self._lane.levels[level], at, bytes_max=bytes_max)
        except StreamNotFound:
            return None
        except LogUnreadable as error:
            self._trouble.unreadable(level, error)
            return None
        self._trouble.readable(level)
        return chunk

    async def _take_chunk(self, pieces: Stretch, chunk: Chunk) -> None:
        wanted = _ranges(pieces)
        try:
            found = await self._gather(pieces, chunk.frames, wanted)
        except FrameCorrupt:
            # Its checksum holds. Whoever wrote this knows better than this version what it is.
            self.failed += pieces
            return
        missing = without(wanted, found)
        damaged = normalised(each for span in chunk.damaged for each in clipped(missing, *span))
        level = pieces[0].level
        if damaged and not await self._trouble.damaged(level, damaged):
            self.failed += _within(pieces, damaged)
            missing = without(missing, damaged)
        self.lost += [(level, start, end) for start, end in missing]

    async def _gather(self, pieces: Stretch, frames: bytes, wanted: Ranges) -> Ranges:
        """Make entries of the wanted records; returns which were there."""
        made: list[NewEntry] = []
        size = 0
        left = iter(pieces)
        piece = next(left)
        for batch, _ in decoded_slices(frames, wanted):
            rows = chain.from_iterable(batch.rows())
            for row, append_time_us in zip(rows, batch.append_times_us, strict=True):
                await self.turn.give_way()
                while row[0] >= piece.end:
                    piece = next(left)
                made.append(self._maker.made(row, append_time_us, piece))
                size += made[-1].size
        self._gathered += made
        self._gathered_bytes += size
        if self._gathered_bytes >= MOVE_GATHERED_BYTES:
            await self.append()
        offsets = (each.lane.source_offset for each in made)
        return normalised((offset, offset + 1) for offset in offsets)

    async def append(self) -> None:
        """Append what is gathered."""
        gathered, self._gathered, self._gathered_bytes = self._gathered, [], 0
        appends: list[Append] = []
        runs: list[Sequence[NewEntry]] = []
        for level in (RETRY, DEAD):
            stream = self._lane.levels[level]
            own = [each for each in gathered if each.piece.to == level]
            for frame, run in frames_of(own, stream.partition):
                await self.turn.give_way()
                # The epoch of a topic is the id of the storage topic that its records go to.
                appends.append(Append(stream, frame, stream.storage_topic_id))
                runs.append(run)
        if appends:
            await self._append(appends, runs)

    async def _append(self, appends: list[Append], runs: list[Sequence[NewEntry]]) -> None:
        lane = self._lane
        results = await self._parts.writers.append(lane.levels[RETRY], lane.grant_epoch, appends)
        for append, run, result in zip(appends, runs, results, strict=True):
            await self.turn.give_way()
            if isinstance(result, Appended):
                self._note_stored(append, run, result)
            elif isinstance(result, DssError):
                self._refused = True
                self.failed += _pieces_of(run)
            else:
                raise result

    def _note_stored(self, append: Append, run: Sequence[NewEntry], at: Appended) -> None:
        failed = failed_in(run)
        self._parts.writers.failures.note(failed)
        self._trouble.failed(failed)
        size = len(append.frame) // len(run)
        self.entries += [
            (each.piece.to, stored(each.lane, each.key, self._lane, offset, size))
            for offset, each in enumerate(run, at.base_offset)
        ]


def _stretches(pieces: Sequence[MovePiece]) -> Iterator[Stretch]:
    stretch: Stretch = []
    for piece in sorted(map(cut, pieces), key=lambda each: each[:2]):
        if stretch:
            last = stretch[-1]
            if piece.level != last.level or piece.start > last.end + MOVE_GAP_OFFSETS:
                yield stretch
                stretch = []
        stretch.append(piece)
    if stretch:
        yield stretch


def _taken(left: deque[MovePiece], end: int) -> Stretch:
    """Take off the pieces what lies below an offset."""
    taken: Stretch = []
    while left and left[0].start < end:
        piece = left.popleft()
        taken.append(piece._replace(end=min(piece.end, end)))
        if piece.end > end:
            left.appendleft(piece._replace(start=end))
    return taken


def _within(pieces: Stretch, ranges: Ranges) -> Stretch:
    return [
        piece._replace(start=start, end=end)
        for piece in pieces
        for start, end in clipped(ranges, piece.start, piece.end)
    ]


def _ranges(pieces: Stretch) -> Ranges:
    return normalised((each.start, each.end) for each in pieces)


def _pieces_of(run: Sequence[NewEntry]) -> Stretch:
    """The pieces that the records of entries came in, as far as these go."""
    pieces: Stretch = []
    for entry in run:
        piece, offset = entry.piece, entry.lane.source_offset
        if (
            pieces
            and pieces[-1].end == offset
            and piece == pieces[-1]._replace(start=piece.start, end=piece.end)
        ):
            pieces[-1] = pieces[-1]._replace(end=offset + 1)
        else:
            pieces.append(piece._replace(start=offset, end=offset + 1))
    return pieces
