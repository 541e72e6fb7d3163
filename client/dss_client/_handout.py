"""One delivered piece of a stream on its way to the user.

Invariant: each record is handed out at most once, whichever way the user takes it: one by one, some
by `fetch`, or the rest as a batch. `last_offset` is that of the last record handed out. The rest
may instead be taken for `run`, which hands it out in its own order. A record that came again is
*left out* if its earlier hand-out is acknowledged: it was acknowledged before the record came
again, while the ack was on its way to the daemon, or it has been since.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from dss_client._acks import offset_ranges
from dss_client._grant import HeldGrant
from dss_client.record import DeliveredBatch, DeliveredRecord, made
from dss_core.progress import Ranges, clipped, complement, normalised, total, without

if TYPE_CHECKING:
    from dss_core.decode import DecodedBatch, Row

_EVERY_OFFSET = 1 << 64


class Handout:
    """Frames of one grant, decoded when the first record is taken."""

    kind_of_records: ClassVar = DeliveredRecord

    __slots__ = (
        "_ahead",
        "_aside",
        "_came_again",
        "_copies",
        "_decoded",
        "_frames",
        "_in_part",
        "_mask",
        "_noted_end",
        "_rows",
        "_unsettled",
        "acks",
        "attempt",
        "grant",
        "kind",
        "last_offset",
        "left_out",
        "ranges",
        "redelivered_below",
        "stopped",
        "taker",
    )

    def __init__(
        self,
        grant: HeldGrant,
        frames: bytes,
        mask: Ranges,
        *,
        redelivered: bool,
        attempt: int,
    ) -> None:
        self.grant = grant
        self.redelivered_below = _EVERY_OFFSET if redelivered else grant.redelivered_below
        self.attempt = attempt
        self.acks = grant.acks
        """Where `DeliveredRecord.ack` leaves its offset: in the grant."""
        self.kind = self.kind_of_records
        """The class of the records that are made."""
        self.taker: object = None
        """Where records of another class leave their acks."""
        self.last_offset = -1
        """The offset of the last record handed out or taken; -1 before the first."""
        self.stopped = False
        """Nothing more is handed out."""
        self.ranges: Ranges = ()
        """The offsets in it that are for the user, once decoded."""
        self._frames = frames
        self._mask = mask
        self._noted_end = 0
        self._decoded: DecodedBatch | None = None
        self._rows: Iterator[Row] | None = None
        self._ahead: Iterator[Row] | None = None
        """Rows that were put back, and perhaps taken again since."""
        self._came_again = redelivered
        self._unsettled = (grant.unsettled() if redelivered else None) or None
        self._copies: set[int] = set()
        """Offsets whose earlier hand-out was not settled when the piece came."""
        self.left_out: set[int] = set()
        """Records that came again and are not handed out: acknowledged ones, as far as was looked,
        and those that the daemon took back."""
        self._in_part = False
        """Some records are, or were, handed out by themselves."""
        self._aside: list[int] = []
        """Records handed out by themselves that the frontier of the others has not passed yet."""

    @property
    def stream(self) -> str:
        """The stream, as TOPIC/ORDINAL/PARTITION."""
        return self.grant.stream

    @property
    def decoded(self) -> "DecodedBatch":
        """The columns.

        Raises:
            FrameCorrupt: the frames are damaged.
        """
        if self._decoded is None:
            from dss_core.decode import decode

            self._decoded = decode(self._frames, self._mask)
            self.ranges = complement(
                normalised(self._mask), self._decoded.base_offset, self._decoded.next_offset
            )
            if self._unsettled is not None:
                self._copies = self._unsettled.among(self.ranges)
            # Refused records come again most often, and need no look at what is acknowledged.
            if self._came_again and total(self.ranges) > len(self._copies):
                self._leave_out(self.grant.acked_before(self.ranges))
        return self._decoded

    def rows(self) -> "Iterator[Row]":
        """The rows of the records not yet taken; all callers share the iterator, and take one at a
        time.

        Raises:
            FrameCorrupt: the frames are damaged.
        """
        if self._rows is None:
            self._rows = self._all_rows()
        rows = self._rows
        if self._ahead is not None:
            rows = chain(self._ahead, rows)
        return rows if self._unsettled is None and not self.left_out else self._not_acked(rows)

    @property
    def came_again(self) -> bool:
        """Whether all of it was sent before."""
        return self._came_again

    def _all_rows(self) -> "Iterator[Row]":
        return chain.from_iterable(self.decoded.rows())

    def records(self) -> Iterator[DeliveredRecord]:
        """The records not yet taken, made when they are taken."""
        return made(self.kind, self, (self.rows(),))

    def _not_acked(self, rows: "Iterator[Row]") -> "Iterator[Row]":
        for row in rows:
            offset = row[0]
            if offset in self._copies:
                self._look_at((offset,))
            if offset not in self.left_out:
                yield row

    def put_back(self, *rows: "Row") -> None:
        """Put back rows that were just taken, in order; they come first again."""
        self._ahead = iter([*rows, *(self._ahead or ())])

    def make_anew(self) -> None:
        """The making of records was broken off: make those that were not handed out again."""
        self._rows = islice(self._all_rows(), self._next_at(), None)
        self._ahead = None

    @property
    def may_be_acked(self) -> bool:
        """Whether records may be acknowledged before they are handed out again."""
        return self._unsettled is not None

    def leave_out_acked(self) -> bool:
        """Leave out records that came again and are acknowledged by now; returns whether there were
        any."""
        if not self._came_again:
            return False
        offsets = self.decoded.offsets
        before = len(self.left_out)
        if self._unsettled is not None:
            self._look_at(offsets[self._next_at() :])
        return len(self.left_out) > before

    def _look_at(self, offsets: Iterable[int]) -> None:
        acked = self._copies.intersection(offsets)
        acked = {at for at in acked if self.grant.has_acked(at)}
        if acked:
            self._leave_out(offset_ranges([*acked]))

    def _leave_out(self, acked: Ranges) -> None:
        if acked:
            self.left_out.update(at for part in acked for at in range(*part))
            self._copies -= self.left_out
            self.ranges = without(self.ranges, acked)

    def _next_at(self) -> int:
        return bisect_right(self.decoded.offsets, self.last_offset)

    def count_left(self) -> int:
        """How many records are still to be handed out."""
        self.leave_out_acked()
        left_out = sum(at > self.last_offset for at in self.left_out)
        return self.decoded.records - self._next_at() - left_out

    @property
    def end(self) -> int:
        """The offset after the last record for the user; masked offsets may follow."""
        return self.ranges[-1][1] if self.ranges else 0

    @property
    def exhausted(self) -> bool:
        """Whether no record is left to be handed out one by one."""
        return self.stopped or self.last_offset + 1 >= self.end

    def note(self, end: int) -> None:
        """Tell the grant that the records below the offset are handed out."""
        if end > self._noted_end:
            handed = clipped(self.ranges, self._noted_end, end)
            self._noted_end = end
            if self._aside:
                handed = without(handed, offset_ranges(self._aside))
                self._aside = [at for at in self._aside if at >= end]
            if handed:
                self.grant.handed_out(handed)

    def take(self) -> Iterator[DeliveredRecord]:
        """Take the records that are left; from now on `HeldGrant.hand_out` reports each by
        itself."""
        records = self.records()
        self.note(self.last_offset + 1)
        left = clipped(self.ranges, self.last_offset + 1, _EVERY_OFFSET)
        self.grant.take(left, self._unsettled)
        self._noted_end = _EVERY_OFFSET
        return records

    def begin_parts(self) -> None:
        """From now on some of the records that are left may be handed out by themselves."""
        if not self._in_part:
            self._in_part = True
            self.note(self.last_offset + 1)
            left = clipped(self.ranges, self.last_offset + 1, _EVERY_OFFSET)
            self.grant.take(left, self._unsettled)

    def set_aside(self, offset: int) -> None:
        """A record that was just taken is handed out by itself, perhaps later."""
        self._aside.append(offset)
        self.last_offset = offset

    def take_back(self, ranges: Ranges) -> None:
        """The daemon took these back: those that were not handed out never are."""
        if self._decoded is None:
            self._mask = normalised((*self._mask, *ranges))
        else:
            first = max(self.last_offset + 1, self._decoded.base_offset)
            self._leave_out(clipped(ranges, first, self._decoded.next_offset))

    def apart(self, offsets: list[int]) -> DeliveredBatch:
        """Records that were set aside, as a batch that is handed out."""
        piece = self.again(offsets)
        piece._noted_end = _EVERY_OFFSET
        return piece._batch()

    def rest(self) -> DeliveredBatch:
        """Everything that was not handed out one by one, as a batch."""
        self.leave_out_acked()
        remaining = self
        if self.last_offset >= 0 or self.left_out:
            remaining = self._without_handed()
            # The hand-out is noted here, and must not be noted twice.
            remaining._noted_end = _EVERY_OFFSET
        return remaining._batch()

    def _batch(self) -> DeliveredBatch:
        return DeliveredBatch(self, self.decoded)

    def split_off(self) -> "Handout":
        """Return the records that are left as a piece of their own; this one hands out nothing
        more."""
        if self.last_offset < 0:
            return self
        self.stopped = True
        return self._without_handed()

    def release(self, *, for_good: bool = True) -> None:
        """Every record is handed out or taken: keep only what the records share.

        The frames are kept too if `again` may put some of the records back.
        """
        self._decoded = None
        self._rows = None
        self._ahead = None
        if for_good and not self._in_part:
            self._frames = b""

    def again(self, offsets: list[int]) -> "Handout":
        """Records that were taken and not handed out, as a new piece."""
        return self._masked(complement(offset_ranges(offsets), 0, _EVERY_OFFSET))

    def _without_handed(self) -> "Handout":
        mask = [*self._mask]
        if self.last_offset >= 0:
            mask.append((self.decoded.base_offset, self.last_offset + 1))
        if self.left_out:
            mask += offset_ranges([*self.left_out])
        return self._masked(tuple(mask))

    def _masked(self, mask: Ranges) -> "Handout":
        rest = type(self)(
            self.grant,
            self._frames,
            mask,
            redelivered=self.redelivered_below == _EVERY_OFFSET,
            attempt=self.attempt,
        )
        rest._unsettled = self._unsettled
        return rest


class Handouts(NamedTuple):
    """The classes of pieces that come for a subscription."""

    main: type[Handout]
    retried: type[Handout]
    """For records from the retry queue of its group."""
