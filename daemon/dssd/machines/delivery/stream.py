"""One grant inside the delivery window: what of its stream is read, and what goes to the client.

::

    floor        frontier        sent = cursor
      |  handed out  |  in the client's buffer  |  not read yet
      #####.##..#####|..........................|

The cursor takes each offset once, and skips offsets that are done without a read. Redeliveries are
read separately, before new records. Records that the filter rejects, that retention took or that
are damaged count as acknowledged once the cursor has passed them. `RecordStates` has the state of
each record.

A chunk that is new and whole is sent as it is. Of any other, the wanted records are sent, in
deliveries of one mark each; `Marking` knows what was handed out before, and how much of that may be
out at a time.

At `ACKED_RANGES_MAX` acked ranges nothing more is read until the user closes gaps between them.
Acks of records that are out by then may add as many ranges again, which credit bounds; a report has
them all, or acknowledged records would be sent again. A holder that was granted so many ranges
reads on until it has added `RANGES_ADDED_MAX`: nobody else can close the gaps.

This module must not know what the client says.
"""

from collections import deque
from typing import TYPE_CHECKING, Protocol, Self

from dss_core.limits import ACKED_RANGES_MAX, FRAME_BYTES_USUAL
from dss_core.progress import Ranges, clipped, complement, normalised, without
from dssd.machines.delivery.events import ChunkRead, Deliver, Edited, Installed
from dssd.machines.delivery.frame_plan import (
    CreditLeft,
    DeliveryPlan,
    FrameSpans,
    plan,
    whole_frames,
)
from dssd.machines.delivery.outstanding import SentRange
from dssd.machines.delivery.read_trouble import ReadTrouble
from dssd.machines.delivery.record_states import RecordStates
from dssd.machines.delivery.retry import Resting
from dssd.machines.messages import Stall, StreamReport
from dssd.machines.queues import Queues

if TYPE_CHECKING:
    from dssd.machines.delivery.entries import WaitingEntries

RANGES_ADDED_MAX = 64
"""How many acked ranges a holder may add when it was granted about `ACKED_RANGES_MAX` of them. If
it might add none, one record that is out would hold up all others."""


RESTING_RANGES_MAX = 4_096
"""How many refused ranges of one stream may wait to be sent again; at the cap new records wait."""

DELIVERY_READ_BYTES_MAX = 1 << 20
"""The size of a read ahead, and so of a delivery of small frames: sending a message costs as much
as a quarter of a megabyte in it (measured)."""


NEVER_HELD = 1 << 62


class Keyed(Protocol):
    """The ordered part of a lane, as its stream knows it."""

    def meet(self, chunk: ChunkRead) -> None:
        """The rest of the chunk is about to be sent."""


class LaneOfParts(Protocol):
    """What a stream knows of its lane."""

    @property
    def parts(self) -> "tuple[DeliveredStream, ...]":
        """The levels that are delivered."""

    @property
    def again_ms(self) -> int | None:
        """When moves that came to nothing are tried again."""

    @property
    def is_full(self) -> bool:
        """Whether nothing more may leave the stream."""

    def queues(self) -> Queues:
        """The queues for a report of the group protocol."""

    def moves(self, level: int, offset: int) -> bool:
        """Whether a record waits to be moved, or is being moved."""


class DeliveredStream:
    """The state of one grant. Owned by the delivery window."""

    def __init__(
        self, installed: Installed, credit_records: int, resting: Resting, now_ms: int
    ) -> None:
        granted = installed.granted
        self.grant = installed.grant
        """The number of the grant plus the level."""
        self.level = 0
        """The level in its lane; 0 in a group without queues."""
        self.lane: LaneOfParts | None = None
        """The lane that it is a part of; None in a group without queues."""
        self.entries: WaitingEntries | None = None
        """Only of a retry queue: the entries that wait for their time."""
        self.is_shut = False
        """Nothing is read before its lane is open."""
        self.credit_records = credit_records
        self.subscription = installed.subscription
        self.stream = granted.stream
        self.grant_epoch = granted.grant_epoch
        self.records = RecordStates(installed, credit_records, resting, now_ms)
        self.cursor = granted.progress.floor
        self.chunk: ChunkRead | None = None
        self.spans: FrameSpans | None = None
        """The chunk's frames, once it had to be cut."""
        self.chunk_at = 0
        self.chunk_end = 0
        self.resending = False
        """The chunk, or the read under way, is for redeliveries."""
        self.reading = False
        self.at_tail = False
        self.grown = False
        """The stream grew since the read of the present chunk was asked for."""
        self.queue: deque[Self] | None = None
        """Where it waits to read or to send."""
        self.keyed: Keyed | None = None
        """Only in an ordered group."""
        self.revoke_until_ms: int | None = None
        self.stall = Stall.NONE
        self.stall_at_damage = installed.stall_at_damage
        self.trouble = ReadTrouble()
        self.gone: Ranges = ()
        """Redeliveries that are lost; the client is not told yet."""
        self._held_at = NEVER_HELD
        """The cursor waits while this many suspects are out."""
        self._ahead_bytes = DELIVERY_READ_BYTES_MAX
        """How much is read ahead: less where chunks are cut."""
        self._ranges_max = ACKED_RANGES_MAX
        self.begins()

    @property
    def lent(self) -> int:
        """The number of the grant."""
        return self.grant - self.level

    def parts(self) -> "tuple[DeliveredStream, ...]":
        """The streams of the grant, by level."""
        return (self,) if self.lane is None else self.lane.parts

    def begins(self) -> None:
        """Reading begins: bound the acked ranges by those that the stream has now."""
        ranges = len(self.records.progress.ranges)
        self._ranges_max = max(ACKED_RANGES_MAX, ranges + RANGES_ADDED_MAX)

    # Reading

    def read_offset(self) -> int | None:
        """Where to read next, or None where nothing is to be read now."""
        records = self.records
        if self.reading or self.chunk is not None or records.ending or self.is_shut:
            return None
        if self.trouble.again_ms is not None:
            return None
        due = self._due_again()
        if due is not None:
            self.resending = True
            return due
        if self.at_tail or self._cursor_held():
            return None
        self.resending = False
        if records.progress.ranges or self.cursor < records.progress.floor:
            # Offsets that are done are skipped: they may be unreadable.
            self.cursor = records.sent = records.progress.first_unacked(self.cursor)
        return self.cursor

    def _due_again(self) -> int | None:
        """The offset of the next redelivery to read. Records that became done while they rested
        are skipped: they may be unreadable."""
        resting = self.records.resting
        while (due := resting.due()) is not None:
            left = self.records.not_done((due,))
            if left == (due,):
                return due[0]
            resting.took(*due, left)
        return None

    def read_bytes_max(self) -> int:
        """How much to read: for redeliveries, about a frame for each range that is due."""
        if not self.resending:
            return self._ahead_bytes
        return min(self.records.resting.due_ranges * FRAME_BYTES_USUAL, DELIVERY_READ_BYTES_MAX)

    def take_chunk(self, chunk: ChunkRead) -> bool:
        """Take what was read; whether there is something to send."""
        self.reading = False
        if self.records.ending:
            return False
        self.trouble.over()
        if self.resending:
            self._take_again(chunk)
        elif chunk.next > chunk.offset:
            self._take_on(chunk)
        else:
            self._note_end(chunk)
        return self.chunk is not None

    def read_failed(self, now_ms: int, trouble: Stall) -> None:
        """The read failed, or met damage at which the group stops: it is tried again later."""
        self.reading = False
        if not self.records.ending:
            self.trouble.met(trouble, now_ms)
            if self.resending:
                self.records.resting.pass_by()

    def edit(self, given: Edited, now_ms: int) -> None:
        """Its group was edited."""
        self.records.waits.last(given.ack_wait_ms)
        self.stall_at_damage = given.stall_at_damage
        if self.trouble.stall is Stall.DAMAGED:
            self.trouble.again_now(now_ms)

    def lose(self, ranges: Ranges) -> None:
        """Records that were to be moved no longer exist."""
        self.records.lose(ranges)
        self.gone = normalised((*self.gone, *ranges))

    def as_far_as_it_goes(self, chunk: ChunkRead) -> ChunkRead | None:
        """The chunk, cut before damage if the group stops there; None if nothing is left."""
        met = self.records.not_done(chunk.damaged) if self.stall_at_damage else ()
        if not met:
            return chunk
        stop = met[0][0]
        if stop == chunk.offset:
            return None
        # No frame comes before damage.
        return chunk._replace(
            frames=b"",
            mask=(),
            records=0,
            base=stop,
            next=stop,
            lost=clipped(chunk.lost, chunk.offset, stop),
            damaged=clipped(chunk.damaged, chunk.offset, stop),
            at_end=False,
        )

    def end(self, until_ms: int | None) -> None:
        """Send nothing more; until the time, what is out may still be settled."""
        self.revoke_until_ms = until_ms
        self.records.end()

    @property
    def finished(self) -> bool:
        """Its final report was made."""
        return self.records.ending and self.revoke_until_ms is None

    def grow(self) -> None:
        """The stream has more records."""
        self.at_tail = False
        self.grown = self.reading or self.chunk is not None

    def forget_chunk(self) -> None:
        """Drop what was read and not sent; it is read again when its time comes."""
        self.chunk = None
        self.spans = None

    def cut(self, end: int) -> None:
        """Keep only the part of the chunk below the offset: the rest is read again."""
        assert self.chunk is not None
        self._ahead_bytes = max(self._ahead_bytes // 4, FRAME_BYTES_USUAL)
        if end < self.chunk_end:
            records = end - self.chunk.base
            self.chunk = self.chunk._replace(records=records, next=end, at_end=False)
            self.chunk_end = end

    def _take_on(self, chunk: ChunkRead) -> None:
        self._held_at = NEVER_HELD
        self._ahead_bytes = min(self._ahead_bytes * 2, DELIVERY_READ_BYTES_MAX)
        if not chunk.frames:
            self.records.consumed.pass_by(chunk, ((chunk.offset, chunk.next),))
            self.cursor = chunk.next
            self._note_end(chunk)
            return
        if chunk.base > chunk.offset:
            self.records.consumed.pass_by(chunk, ((chunk.offset, chunk.base),))
        self.chunk = chunk
        self.chunk_at = max(chunk.offset, chunk.base)
        self.chunk_end = chunk.base + chunk.records

    def _note_end(self, chunk: ChunkRead) -> None:
        """Note whether the cursor is at the end of the stream: then wait until the stream grows."""
        ends = chunk.at_end or chunk.next <= chunk.offset
        self.at_tail = ends and not self.grown
        self.grown = False

    def _take_again(self, chunk: ChunkRead) -> None:
        records = self.records
        start, end = chunk.offset, min(chunk.base + chunk.records, self.cursor)
        lost = records.resting.due_in(start, self._lost_below(chunk))
        if lost:
            records.consumed.pass_by(chunk, lost, "lost")
            records.lost(lost)
            self.gone = normalised((*self.gone, *lost))
            records.resting.took(start, lost[-1][1])
        if chunk.frames and records.resting.due_in(start, end):
            self.chunk = chunk
            self.chunk_at = max(start, chunk.base)
            self.chunk_end = end

    def _lost_below(self, chunk: ChunkRead) -> int:
        """The end of a gap from the read's offset on: retention or damage took these records."""
        if chunk.frames:
            return chunk.base
        due = self.records.resting.due_in(chunk.offset, NEVER_HELD)
        # The read found the end of the stream: the due records there are lost.
        return max(chunk.next, due[0][1]) if due and chunk.next <= chunk.offset else chunk.next

    def capped(self) -> bool:
        """Whether there are too many acked or resting ranges to read on."""
        records = self.records
        ranges, out = len(records.progress.ranges), records.out.records
        resting = len(records.resting) + records.moving + records.following
        if ranges >= self._ranges_max or resting >= RESTING_RANGES_MAX:
            return True
        # If the stream was lent near the cap, it may add only a few ranges. Otherwise each holder
        # could add half its credit, as each record in flight may split a range of acks.
        lent_near = self._ranges_max > ACKED_RANGES_MAX
        return bool(lent_near and out and ranges and ranges + out >= self._ranges_max)

    def suspects_hold_cursor(self) -> bool:
        """Whether so many suspects are out that no more may go."""
        return self.records.out.suspects >= self._held_at

    def _cursor_held(self) -> bool:
        return self.suspects_hold_cursor() or self.capped()

    # Sending

    @property
    def fresh(self) -> bool:
        """Whether all that is left of the chunk is new: none is masked, acked, suspect or to be
        passed by."""
        chunk = self.chunk
        is_new = (
            chunk is not None
            and not chunk.mask
            and not self.resending
            and self.chunk_at >= self.records.marking.fresh_from
        )
        return is_new and (self.keyed is None or not self._is_passed_by())

    def _is_passed_by(self) -> bool:
        """Whether a record of the chunk waits behind its key, or was moved before the cursor
        reached it."""
        assert self.chunk is not None
        span, records = (self.chunk_at, self.chunk_end), self.records
        return bool(clipped(records.held_back, *span) or records.closed(self.chunk, *span))

    def send_whole(self) -> Deliver:
        """Send a fresh chunk as it is."""
        chunk = self.chunk
        assert chunk is not None
        return self._send_fresh(chunk, chunk.frames, self.chunk_end)

    def send_frames(self, spans: FrameSpans, room: CreditLeft) -> Deliver | None:
        """Send what the credit allows of a fresh chunk; None where it is cut within a frame."""
        chunk = self.chunk
        assert chunk is not None
        chosen = whole_frames(spans, (self.chunk_at, self.chunk_end), room)
        if chosen is None:
            return None
        begin, end = chosen
        frames = chunk.frames[spans.at[begin] : spans.at[end]]
        return self._send_fresh(chunk, frames, spans.base[end])

    def _send_fresh(self, chunk: ChunkRead, frames: bytes, end: int) -> Deliver:
        start = self.chunk_at
        self.records.out.add(SentRange(start, end, len(frames)))
        self._advance(chunk, end)
        return Deliver(self.grant, frames, (), False, 1, start, end)

    def send_part(self, spans: FrameSpans, room: CreditLeft) -> Deliver | None:
        """Send what the credit allows of the chunk, or nothing; a chunk that is used up is dropped.

        The chunk is dropped where the stream itself must wait.
        """
        chunk, records = self.chunk, self.records
        assert chunk is not None
        start, end = self.chunk_at, self.chunk_end
        closed = records.closed(chunk, start, end)
        if self.resending:
            return self._send_again(chunk, spans, closed, room)
        wanted = complement(closed, start, end)
        if records.held_back:
            wanted = without(wanted, records.held_back)
        if not wanted:
            self._advance(chunk, end)
            return None
        stretch = records.marking.first_stretch(wanted, records.frontier, records.out)
        if stretch.records_max <= 0:
            self._held_at = records.out.suspects
            self.forget_chunk()
            return None
        planned = plan(spans, wanted, stretch, room)
        records.note_out(planned, again=self.resending)
        sent_to = planned.picked[-1][1]
        self._advance(chunk, end if sent_to >= wanted[-1][1] else sent_to)
        return self._delivery(chunk, planned)

    def _send_again(
        self, chunk: ChunkRead, spans: FrameSpans, closed: Ranges, room: CreditLeft
    ) -> Deliver | None:
        """Send the due records of the chunk that have the mark of the first."""
        records = self.records
        start, end = self.chunk_at, self.chunk_end
        due = records.resting.due_in(start, end)
        wanted = without(due, closed)
        if not wanted:
            self._took_again(chunk, ())
            return None
        same, stretch = records.marking.of_one_mark(wanted, records.frontier)
        planned = plan(spans, same, stretch, room)
        records.note_out(planned, again=self.resending)
        records.no_longer_held_back(planned.picked)
        self._took_again(chunk, without(wanted, planned.picked))
        return self._delivery(chunk, planned)

    def _took_again(self, chunk: ChunkRead, left: Ranges) -> None:
        """The due records of the chunk were sent, except those left."""
        if chunk.mask:
            self.records.consumed.reject(clipped(chunk.mask, self.chunk_at, self.chunk_end))
        self.records.resting.took(self.chunk_at, self.chunk_end, left)
        if left:
            self.chunk_at = left[0][0]
        else:
            self.forget_chunk()

    def _delivery(self, chunk: ChunkRead, planned: DeliveryPlan) -> Deliver:
        if planned.size == len(chunk.frames):
            frames = chunk.frames
        elif len(planned.pieces) == 1:
            frames = chunk.frames[slice(*planned.pieces[0])]
        else:
            frames = b"".join([chunk.frames[first:last] for first, last in planned.pieces])
        return Deliver(
            self.grant,
            frames,
            planned.mask,
            planned.redelivered,
            planned.attempt,
            planned.base,
            planned.end,
        )

    def _advance(self, chunk: ChunkRead, to: int) -> None:
        records = self.records
        if chunk.mask:
            records.consumed.reject(clipped(chunk.mask, self.chunk_at, to))
        done = to >= self.chunk_end
        if done:
            records.consumed.pass_by(chunk, ((to, chunk.next),))
            to = chunk.next
        self.cursor = records.sent = to
        self.chunk_at = to
        if done:
            self._note_end(chunk)
            self.forget_chunk()

    # Reporting

    def report(self, *, sent: int | None = None, is_awaited: bool = False) -> StreamReport:
        """How the grant stands."""
        records = self.records
        return StreamReport(
            self.stream,
            self.grant_epoch,
            records.progress,
            records.handed_out(),
            records.marking.attempts(),
            sent,
            self.stall,
            records.fate(),
            is_awaited,
            () if self.lane is None else self.lane.queues(),
        )

    def stalled_by(self) -> Stall:
        """Why nothing of it is delivered, if anything stands in the way."""
        if self.trouble.stall is not Stall.NONE or self.level:
            return self.trouble.stall
        ranges = len(self.records.progress.ranges)
        return Stall.UNACKED if ranges >= ACKED_RANGES_MAX // 2 and self.capped() else Stall.NONE

    def next_ms(self) -> int | None:
        """The earliest time at which something of it is due."""
        records = self.records
        if records.ending or self.is_shut:
            return self.revoke_until_ms
        times = (
            records.waits.next_ms(),
            records.resting.next_ms(),
            records.waiting.next_ms(self.cursor),
            self.trouble.again_ms,
            None if self.entries is None else self.entries.next_ms(),
        )
        return min((at_ms for at_ms in times if at_ms is not None), default=None)

    def wake(self, now_ms: int) -> None:
        """Make due what has rested long enough, and read again what could not be read."""
        records = self.records
        if self.entries is not None:
            for start, end in self.entries.take_due(records.progress, now_ms):
                records.resting.rest(start, end, now_ms)
        records.wake(self.cursor, now_ms)
        self.trouble.wake(now_ms)
