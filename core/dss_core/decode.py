"""Reading the records of consecutive frames of one stream, column by column, when asked.

Invariant: a column is decoded at its first use and kept; rows that the mask covers are in no
column. Arrow is loaded only for frames in its layout, or for `DecodedBatch.to_arrow`. This module
knows nothing of grants or acks.
"""

from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, groupby, repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from dss_core import rows_layout
from dss_core.errors import FrameCorrupt
from dss_core.frame import LAYOUT_ROWS, Summary, subjects_and_body_at, summaries_of
from dss_core.progress import Range, Ranges, normalised, total
from dss_core.rows_layout import Headers, RowColumns

if TYPE_CHECKING:
    import pyarrow as pa


Row = tuple[int, str, bytes | None, bytes, Headers, int]
"""Offset, subject, key, payload, headers, and the producer's time in microseconds."""

View = Callable[[list[str], list[Headers]], tuple[list[Any], list[Any]]]
"""What stands in records for their subjects and headers, a column each."""

_LAYOUT, _RECORDS, _BASE = 0, 4, 5
"""Places in a `dss_core.frame.Summary`."""


def decode(frames: bytes, mask: Ranges = (), *, checksums: bool = True) -> "DecodedBatch":
    """The records of consecutive frames of one stream, without those whose offset is masked.

    Raises:
        FrameCorrupt: a frame is not whole, or a body checksum is wrong.
    """
    return DecodedBatch(frames, summaries_of(frames, checksums=checksums), mask)


class _RowsPart:
    """Neighbouring frames in the rows layout, read in one go."""

    __slots__ = ("_columns", "_frames", "_summaries")

    def __init__(self, frames: bytes, summaries: list[Summary]) -> None:
        self._frames = frames
        self._summaries = summaries
        self._columns: RowColumns | None = None

    def column(self, name: str) -> list[Any]:
        """One column."""
        column: list[Any] = getattr(self._read(), name)
        return column

    def rows(self) -> Callable[..., Iterator[Row]]:
        """Its records, when called; whatever can be wrong with them is found out now."""
        columns = self._read()
        return partial(_rows, _offsets(self._summaries), columns._asdict().__getitem__)

    def values(self, *, encoded: bool) -> "pa.Table":
        """All columns."""
        from dss_core import arrow_tables

        return arrow_tables.values_of_rows(self._read(), encoded=encoded)

    def key_hashes(self) -> "pa.UInt64Array":
        """The routing hashes of the keys."""
        from dss_core.arrow_routing import hashes_or_null

        return hashes_or_null(self._read().keys)

    def add_hashes(self, found: "array[int]") -> None:
        """As `hashes_in`."""
        found.extend(rows_layout.key_hashes(self._frames, self._summaries))

    def _read(self) -> RowColumns:
        if self._columns is None:
            self._columns = rows_layout.read(self._frames, self._summaries)
        return self._columns


class _ArrowPart:
    """One frame in the arrow layout."""

    __slots__ = ("_batch", "_frames", "_names", "_summary")

    def __init__(self, frames: bytes, summary: Summary) -> None:
        self._frames = frames
        self._summary = summary
        self._batch: pa.RecordBatch | None = None
        self._names: tuple[str, ...] = ()

    def column(self, name: str) -> list[Any]:
        """One column."""
        from dss_core import arrow_layout

        batch = self._read()
        if name == "subjects":
            return arrow_layout.subjects(batch, self._names)
        return arrow_layout.listed(batch, name)

    def rows(self) -> Callable[..., Iterator[Row]]:
        """Its records, when called; whatever can be wrong with them is found out now."""
        checked = {name: self.column(name) for name in ("subjects", "headers")}
        base, records = self._summary[_BASE], self._summary[_RECORDS]

        def column(name: str) -> list[Any]:
            return checked[name] if name in checked else self.column(name)

        return partial(_rows, range(base, base + records), column)

    def batch(self) -> "tuple[tuple[str, ...], pa.RecordBatch]":
        """The names of its subjects, and all columns."""
        batch = self._read()
        return self._names, batch

    def key_hashes(self) -> "pa.UInt64Array":
        """The routing hashes of the keys."""
        return self._read().column("key_hash")

    def add_hashes(self, found: "array[int]") -> None:
        """As `hashes_in`."""
        from dss_core.arrow_routing import add_hashes

        add_hashes(found, self.key_hashes())

    def _read(self) -> "pa.RecordBatch":
        if self._batch is None:
            from dss_core import arrow_layout

            _, _, end, _, records, *_ = self._summary
            self._names, body_at = subjects_and_body_at(self._frames, self._summary)
            batch = arrow_layout.read(self._frames, body_at, end)
            if batch.num_rows != records:
                raise FrameCorrupt(reason="its record batch and its header differ in length")
            self._batch = batch
        return self._batch


class DecodedBatch:
    """Records as columns of equal length, in the order of their offsets."""

    __slots__ = (
        "_cached",
        "_kept",
        "_parts",
        "_summaries",
        "base_offset",
        "next_offset",
        "records",
    )

    def __init__(self, frames: bytes, summaries: list[Summary], mask: Ranges) -> None:
        self._summaries = summaries
        self._parts = _parts(frames, summaries)
        self._kept: list[Range] | None = _kept_rows(summaries, mask) if mask else None
        self._cached: dict[str, list[Any]] = {}
        spans = _spans([summaries[0], summaries[-1]]) if summaries else [(0, 0)]
        self.base_offset = spans[0][0]
        """The offset of the first record, masked or not; 0 where there is none."""
        self.next_offset = spans[-1][1]
        """The offset after the last record, masked or not; 0 where there is none."""
        if self._kept is None:
            self.records = sum([summary[_RECORDS] for summary in summaries])
        else:
            self.records = total(tuple(self._kept))
        """How many records the columns hold."""

    def __len__(self) -> int:
        """How many records the columns hold."""
        return self.records

    @property
    def offsets(self) -> Sequence[int]:
        """The offset of each record."""
        if self.records == self.next_offset - self.base_offset:
            return range(self.base_offset, self.next_offset)
        return self._once("offsets", self._all_offsets)

    def _all_offsets(self) -> list[int]:
        return _offsets(self._summaries)

    @property
    def append_times_us(self) -> list[int]:
        """When the daemon appended each record."""
        return self._once("append_times_us", self._all_append_times_us)

    def _all_append_times_us(self) -> list[int]:
        times = (repeat(time_us, records) for *_, records, _, time_us in self._summaries)
        return list(chain.from_iterable(times))

    @property
    def payloads(self) -> list[bytes]:
        """The payload of each record. Raises FrameCorrupt: a frame cannot be read."""
        return self._column("payloads")

    @property
    def keys(self) -> list[bytes | None]:
        """The key of each record, None where absent. Raises FrameCorrupt."""
        return self._column("keys")

    @property
    def subjects(self) -> list[str]:
        """The subject of each record. Raises FrameCorrupt."""
        return self._column("subjects")

    @property
    def headers(self) -> list[Headers]:
        """The headers of each record, in order, repeats kept. Raises FrameCorrupt."""
        return self._column("headers")

    @property
    def timestamps_us(self) -> list[int]:
        """The time that the producer gave each record. Raises FrameCorrupt."""
        return self._column("timestamps_us")

    def _column(self, name: str) -> list[Any]:
        return self._once(name, lambda: self._joined(name))

    def _joined(self, name: str) -> list[Any]:
        if len(self._parts) == 1:
            return self._parts[0].column(name)
        return list(chain.from_iterable(part.column(name) for part in self._parts))

    def _once(self, name: str, compute: Callable[[], list[Any]]) -> list[Any]:
        column = self._cached.get(name)
        if column is None:
            column = compute()
            if self._kept is not None:
                column = [value for start, end in self._kept for value in column[start:end]]
            self._cached[name] = column
        return column

    def rows(self, view: "View | None" = None) -> Iterator[Iterator[Row]]:
        """The records, frame by frame: those of one are made while the next are still bytes.

        A view is given their subjects and headers, and gives what stands in the records for them.

        All of a few hundred KiB at once would not stay in the processor's cache until they are
        used. No column is kept by it; columns that were asked for before are used.

        Raises:
            FrameCorrupt: a frame cannot be read; at once, not with its records.
        """
        if self._kept is not None or self._cached or len(self._parts) == 1:
            return iter([_rows(self.offsets, self._column, view)])
        pieces = [part.rows() for part in self._parts]
        return (piece(view=view) for piece in pieces)

    def to_arrow(self, *, key_hashes: bool = False, encoded: bool = False) -> "pa.Table":
        """The records as a table, without copying payloads that came in the arrow layout.

        Columns: offset, subject, key, payload, headers, timestamp_us, append_time_us; with
        ``key_hashes`` also key_hash, by which records are routed. With ``encoded`` the subjects are
        an index into those of each frame: a dictionary, whose entries need not all occur.

        Raises:
            FrameCorrupt: a frame cannot be read.
        """
        from dss_core import arrow_tables

        values = list(_values(self._parts, encoded=encoded))
        hashes = [part.key_hashes() for part in self._parts] if key_hashes else None
        return arrow_tables.table_of(self._summaries, values, hashes, self._kept, encoded=encoded)


def hashes_in(frames: bytes) -> "array[int]":
    """The routing hash of the key of each record of consecutive frames that were verified: 0 where
    it has none, and 1 where that is the hash.

    No record is made. In the arrow layout that is the column as it is.

    Raises:
        FrameCorrupt: a frame cannot be read.
    """
    found = array("Q")
    for part in _parts(frames, summaries_of(frames, checksums=False)):
        part.add_hashes(found)
    return found


def _parts(frames: bytes, summaries: list[Summary]) -> "list[_RowsPart | _ArrowPart]":
    parts: list[_RowsPart | _ArrowPart] = []
    run: list[Summary] = []
    for summary in summaries:
        if summary[_LAYOUT] == LAYOUT_ROWS:
            run.append(summary)
            continue
        if run:
            parts.append(_RowsPart(frames, run))
            run = []
        parts.append(_ArrowPart(frames, summary))
    if run:
        parts.append(_RowsPart(frames, run))
    return parts


def _values(parts: "Sequence[_RowsPart | _ArrowPart]", *, encoded: bool) -> "Iterator[pa.Table]":
    """All columns; neighbours with the same subjects together, for each table costs time."""
    from dss_core import arrow_tables

    for in_rows, own in groupby(parts, lambda part: isinstance(part, _RowsPart)):
        if in_rows:
            yield from (part.values(encoded=encoded) for part in own if isinstance(part, _RowsPart))
            continue
        read = (part.batch() for part in own if isinstance(part, _ArrowPart))
        for names, batches in groupby(read, itemgetter(0)):
            together = [batch for _, batch in batches]
            yield arrow_tables.values_of_batches(together, names, encoded=encoded)


def _rows(
    offsets: Sequence[int], column: Callable[[str], list[Any]], view: "View | None" = None
) -> Iterator[Row]:
    """Records of columns of equal length."""
    subjects, keys, payloads = column("subjects"), column("keys"), column("payloads")
    headers, times_us = column("headers"), column("timestamps_us")
    if view is not None:
        subjects, headers = view(subjects, headers)
    return zip(offsets, subjects, keys, payloads, headers, times_us, strict=True)


def _offsets(summaries: list[Summary]) -> list[int]:
    return [offset for span in _spans(summaries) for offset in range(*span)]


def _spans(summaries: list[Summary]) -> list[Range]:
    """The offsets of each frame."""
    return [(base, base + records) for _, _, _, _, records, base, _ in summaries]


def _kept_rows(summaries: list[Summary], mask: Ranges) -> list[Range]:
    """The rows, counted over all frames, whose offsets no range covers."""
    masked = normalised(mask)
    kept: list[Range] = []
    row = index = 0
    for start, end in _spans(summaries):
        at, shift = start, row - start
        while index < len(masked) and masked[index][0] < end:
            low, high = masked[index]
            if low > at:
                kept.append((at + shift, low + shift))
            at = max(at, high)
            if high > end:
                break  # It may reach into the next frame.
            index += 1
        if at < end:
            kept.append((at + shift, end + shift))
        row += end - start
    return list(normalised(kept))
