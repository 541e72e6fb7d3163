"""Entries of queues: made of records, built into frames, and read again.

An entry is the unchanged record with two more headers; they replace those of an earlier entry.
Invariant: origin, first failure and all fields without a new value stay as in the earlier entry.
The limits of records do not apply to entries: the record has kept them. This module must not know
where entries are stored.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dss_api.lane_entries import brief_from, entry_bytes, entry_from
from dss_core.build import build_frame, split_columns
from dss_core.columns import Columns
from dss_core.decode import Row
from dss_core.errors import FrameCorrupt
from dss_core.lane import (
    ATTEMPT,
    DEAD,
    ENTRIES,
    ERROR_HEADER,
    ERROR_TEXT_BYTES_MAX,
    FOLLOWER,
    LANE_HEADER,
    MAIN,
    RETRY,
    LaneEntry,
    cut_text,
)
from dss_core.producer_ids import NO_PRODUCER
from dss_core.progress import Ranges, covers
from dss_core.routing import key_hash
from dss_core.rows_layout import Headers
from dssd.machines.delivery.causes import DIED, FOLLOWS, GIVEN_UP, REDRIVEN
from dssd.machines.delivery.events import Entry, MovePiece
from dssd.queues.error_fingerprint import fingerprint
from dssd.queues.lane import Lane

FRAME_ENTRIES_MAX = 512
"""How many entries are made into frames without giving way: a millisecond and a half."""


OFFSETS_A_STORAGE_TOPIC = 1 << 63
"""Above all offsets: each restore of a backup raises them by `RESTORE_OFFSETS_RAISED`."""


_SHORT_TEXT = ERROR_TEXT_BYTES_MAX // 4
"""So many characters never exceed the bound in bytes."""


class NewEntry(NamedTuple):
    """A record on its way to a queue."""

    piece: MovePiece
    lane: LaneEntry
    payload: bytes
    key: bytes | None
    subject: str
    headers: Headers
    timestamp_us: int

    @property
    def size(self) -> int:
        """The size of the append, in bytes, roughly."""
        size = len(self.payload) + len(self.key or b"")
        for name, value in self.headers:
            size += len(name) + len(value)
        return size


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes entries for the holder of a lane."""

    lane: Lane
    now_ms: int
    """By the wall clock."""
    rehomes: bool = False
    """The entries go to other lanes."""
    hurried: Ranges = ()
    """Entries of the source retry queue that an operator wants to be due at once."""

    def made(self, row: Row, append_time_us: int, piece: MovePiece) -> NewEntry:
        """The entry that a record of the piece becomes, whose texts were `cut`.

        Raises:
            FrameCorrupt: the record is an entry that cannot be read.
        """
        offset, subject, key, payload, headers, timestamp_us = row
        is_record = piece.level == MAIN
        before = self._of_record(offset, append_time_us) if is_record else lane_of(headers)
        if piece.is_copied:
            new = before._replace(
                source_level=piece.level,
                source_offset=offset,
                source_ordinal=None,
                source_partition=0,
            )
        else:
            new = self._failed(before, offset, piece)
        if self.rehomes:
            new = self._rehomed(new)
        says_why = piece.error or piece.error_type or is_record
        error = piece.error if says_why else error_of(headers)
        named = _with_lane(headers, new, error)
        return NewEntry(piece, new, payload, key, subject, named, timestamp_us)

    def _of_record(self, offset: int, append_time_us: int) -> LaneEntry:
        partition = self.lane.levels[MAIN].partition
        return LaneEntry(MAIN, offset, self.lane.ordinal, partition, offset, append_time_us)

    def _rehomed(self, entry: LaneEntry) -> LaneEntry:
        due_ms = entry.due_ms
        if entry.source_level == RETRY and covers(self.hurried, entry.source_offset):
            due_ms = min(due_ms, self.now_ms)
        return entry._replace(
            due_ms=due_ms,
            source_ordinal=self.lane.ordinal,
            source_partition=self.lane.levels[MAIN].partition,
            grant_epoch=self.lane.grant_epoch,
        )

    def _failed(self, entry: LaneEntry, offset: int, piece: MovePiece) -> LaneEntry:
        """The entry with the new values of the piece."""
        # A record that killed its consumer is moved by a later holder, which never sent it.
        is_anothers = piece.cause in (DIED, REDRIVEN, GIVEN_UP)
        error_type, same = entry.error_type, entry.fingerprint
        follows = piece.cause == FOLLOWS
        if piece.error or piece.error_type:
            error_type, same = piece.error_type, fingerprint(piece.error_type, piece.error)
        # Built in one call: there are thousands, and a replacement takes four times as long.
        return LaneEntry(
            piece.level,
            offset,
            entry.origin_ordinal,
            entry.origin_partition,
            entry.origin_offset,
            entry.origin_time_us,
            # A follower did not fail: it keeps its number of failures.
            max(entry.attempt, piece.attempt) if follows else piece.attempt,
            entry.redrives + (piece.level == DEAD),
            piece.operation or entry.operation,
            piece.due_ms,
            entry.first_failure_ms or self.now_ms,
            piece.cause,
            error_type,
            same,
            entry.client_id if is_anothers else self.lane.client_id,
            self.lane.grant_epoch,
            self.lane.cursor_generation,
            FOLLOWER if follows else ATTEMPT,
        )


def cut(piece: MovePiece) -> MovePiece:
    """The piece with its texts cut to the bounds of an entry."""
    if max(len(piece.error), len(piece.error_type)) <= _SHORT_TEXT:
        return piece
    return piece._replace(error=cut_text(piece.error), error_type=cut_text(piece.error_type))


def lane_of(headers: Headers) -> LaneEntry:
    """What the headers say of an entry.

    Raises:
        FrameCorrupt: they are not those of an entry.
    """
    return entry_from(_said(headers))


def _said(headers: Headers) -> bytes:
    for name, value in headers:
        if name == LANE_HEADER:
            return value
    raise FrameCorrupt(reason="an entry of a queue has no header that says which")


def error_of(headers: Headers) -> str:
    """The text of the last error of an entry."""
    texts = (value for name, value in headers if name == ERROR_HEADER)
    return next(texts, b"").decode("utf-8", "replace")


def frames_of(
    entries: Sequence[NewEntry], partition: int
) -> Iterator[tuple[bytes, Sequence[NewEntry]]]:
    """Frames of the usual size, each with its entries."""
    for start in range(0, len(entries), FRAME_ENTRIES_MAX):
        yield from _frames_of(entries[start : start + FRAME_ENTRIES_MAX], partition)


def _frames_of(
    entries: Sequence[NewEntry], partition: int
) -> Iterator[tuple[bytes, Sequence[NewEntry]]]:
    columns = Columns(
        payloads=[each.payload for each in entries],
        keys=[each.key for each in entries],
        subjects=[each.subject for each in entries],
        headers=[each.headers for each in entries],
        timestamps_us=[each.timestamp_us for each in entries],
    )
    at = 0
    for part in split_columns(columns):
        frame = build_frame(
            part, partition=partition, producer_id=NO_PRODUCER, sequence=0, limits=ENTRIES
        )
        yield frame, entries[at : at + part.records]
        at += part.records


def read_entry(headers: Headers, key: bytes | None, lane: Lane, offset: int, size: int) -> Entry:
    """An entry of a queue, as its holder needs it, from its headers and its key.

    Raises:
        FrameCorrupt: they are not those of an entry.
    """
    return stored(brief_of(headers), key, lane, offset, size)


def brief_of(headers: Headers) -> LaneEntry:
    """The fields of an entry that are needed for thousands of entries at once.

    Raises:
        FrameCorrupt: the headers are not those of an entry.
    """
    return brief_from(_said(headers))


def stored(said: LaneEntry, key: bytes | None, lane: Lane, offset: int, size: int) -> Entry:
    """An entry of a queue, as its holder needs it."""
    entry = Entry(
        offset,
        said.due_ms,
        said.attempt,
        said.source_level,
        said.source_offset,
        size,
        # A key has one partition in each storage topic, so these two tell its records in order.
        said.origin_offset + (said.origin_ordinal - lane.ordinal) * OFFSETS_A_STORAGE_TOPIC,
        operation=said.operation,
    )
    if not lane.is_ordered:
        return entry
    hashed = 0 if key is None else key_hash(key) or 1
    is_suspect = said.cause == DIED
    return entry._replace(key=hashed, is_suspect=is_suspect, is_rehomed=said.is_rehomed)


def _with_lane(headers: Headers, lane: LaneEntry, error: str) -> Headers:
    own = tuple(each for each in headers if each[0] not in (LANE_HEADER, ERROR_HEADER))
    named = (*own, (LANE_HEADER, entry_bytes(lane)))
    return (*named, (ERROR_HEADER, error.encode())) if error else named
