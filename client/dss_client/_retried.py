"""Records that failed before, as they come from the retry queue of their group.

Their grant knows them by their offsets in the queue, users by those in the stream that they come
from. Invariant: the headers that the queue added to a record become attributes; users do not see
them as headers.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from dss_api.lane_entries import entry_from
from dss_client._handout import Handout
from dss_client.record import (
    DeliveredBatch,
    DeliveredRecord,
    HandedOutBatch,
    HandedOutRecord,
    HeaderPairs,
    made,
)
from dss_core.errors import FrameCorrupt
from dss_core.lane import ERROR_HEADER, LANE_HEADER, RETRY, LaneEntry

if TYPE_CHECKING:
    import pyarrow as pa

    from dss_core.decode import DecodedBatch, Row

Kind = TypeVar("Kind", bound=HandedOutRecord)

_ADDED = (LANE_HEADER, ERROR_HEADER)


class EntryHeaders(tuple[tuple[str, bytes], ...]):
    """The headers that a record was published with; apart from them, the fields of its queue
    entry."""

    entry: LaneEntry
    error: str | None

    def attempt(self, hand_outs: int) -> int:
        """The number of this attempt; ``hand_outs`` counts those of this entry, which follow a
        failed one."""
        return self.entry.attempt + max(hand_outs - 1, 1)


def entry_headers(headers: HeaderPairs) -> EntryHeaders:
    """The headers of an entry.

    Raises:
        FrameCorrupt: it is none.
    """
    added = {name: value for name, value in headers if name in _ADDED}
    if LANE_HEADER not in added:
        raise FrameCorrupt(reason="an entry of a queue does not say what it is")
    found = EntryHeaders(pair for pair in headers if pair[0] not in _ADDED)
    found.entry = entry_from(added[LANE_HEADER])
    error = added.get(ERROR_HEADER)
    found.error = None if error is None else error.decode(errors="replace")
    return found


def _with_entries(rows: "Iterable[Row]") -> "Iterator[Row]":
    for offset, subject, key, payload, headers, timestamp_us in rows:
        yield offset, subject, key, payload, entry_headers(headers), timestamp_us


class RetriedFields(HandedOutRecord):
    """The fields of a record from a retry queue, however it is acknowledged."""

    __slots__ = ()
    headers: EntryHeaders

    @property
    def offset(self) -> int:
        """Its place in the stream."""
        return self.headers.entry.origin_offset

    @property
    def stream(self) -> str:
        """The stream that it was published to, as TOPIC/ORDINAL/PARTITION."""
        entry, topic = self.headers.entry, self._source.stream.rsplit("/", 2)[0]
        return f"{topic}/{entry.origin_ordinal}/{entry.origin_partition}"

    @property
    def attempt(self) -> int:
        """How often it is known to have been handed out, this time included."""
        return self.headers.attempt(self._source.attempt)

    @property
    def level(self) -> int:
        """1: it comes from the retry queue of its group, after a failure."""
        return RETRY

    @property
    def last_error(self) -> str | None:
        """The error of the attempt before; None if none was given."""
        return self.headers.error

    @property
    def last_error_type(self) -> str | None:
        """The type of that error, such as the name of an exception."""
        return self.headers.entry.error_type or None


class RetriedRecord(RetriedFields, DeliveredRecord):
    """A record of a retry queue, to be acknowledged."""

    __slots__ = ()


class RetriedColumns(HandedOutBatch):
    """The columns of a batch of a retry queue; its offsets need not ascend."""

    __slots__ = ("_entries",)

    def __init__(self, source: Handout, decoded: "DecodedBatch") -> None:
        super().__init__(source, decoded)
        self._entries: list[EntryHeaders] | None = None

    @property
    def headers(self) -> list[EntryHeaders]:
        """Pairs of name and value."""
        if self._entries is None:
            self._entries = [*map(entry_headers, self._decoded.headers)]
        return self._entries

    @property
    def offsets(self) -> Sequence[int]:
        """The offset of each record in its stream; not in order."""
        return [each.entry.origin_offset for each in self.headers]

    @property
    def append_times_us(self) -> Sequence[int]:
        """When the daemon stored them in their stream, microseconds since 1970."""
        return [each.entry.origin_time_us for each in self.headers]

    @property
    def attempt(self) -> int:
        """The highest known number of hand-outs among the records, this time included."""
        return max(each.attempt(self._source.attempt) for each in self.headers)

    @property
    def level(self) -> int:
        """1: it comes from the retry queue of its group, after failures."""
        return RETRY

    def to_arrow(self, *, key_hashes: bool = False) -> "pa.Table":
        """The columns as Arrow, as `Batch.to_arrow`."""
        table = super().to_arrow(key_hashes=key_hashes)
        own = {
            "offset": self.offsets,
            "headers": self.headers,
            "append_time_us": self.append_times_us,
        }
        import pyarrow as pa

        for name, column in own.items():
            field = table.schema.field(name)
            at = table.schema.get_field_index(name)
            table = table.set_column(at, field, pa.array(column, field.type))
        return table

    def _rows_of(self, kind: type[Kind]) -> Iterator[Kind]:
        return made(kind, self._source, map(_with_entries, self._decoded.rows()))


class RetriedBatch(RetriedColumns, DeliveredBatch):
    """A batch of a retry queue, to be acknowledged as one."""

    __slots__ = ()

    def __iter__(self) -> Iterator[DeliveredRecord]:
        """Its records, one by one."""
        return self._rows_of(RetriedRecord)


class RetriedHandout(Handout):
    """Frames of a retry queue."""

    __slots__ = ()
    kind_of_records = RetriedRecord

    def _all_rows(self) -> "Iterator[Row]":
        return _with_entries(super()._all_rows())

    def _batch(self) -> DeliveredBatch:
        return RetriedBatch(self, self.decoded)
