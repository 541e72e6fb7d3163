"""One grant inside the delivery window: what of its stream was read, sent, handed out and acked.

::

    floor        frontier        sent = cursor
      |  handed out  |  in the client's buffer  |  not read yet
      #####.##..#####|..........................|

Offsets below the cursor are acknowledged, out (`Outstanding`) or resting until they come again
(`Resting`), exactly one of them. The cursor takes each offset once; what comes again is read once
more on its own, before new records. Records that the filter rejects, that retention took or that
are damaged count as acknowledged once the cursor has passed them.

A stream that was lent before begins at its floor; `Marking` knows what was handed out before, and
how much of that may be out at a time.

At `ACKED_RANGES_MAX` acked ranges nothing more is read until the user closes gaps between them.
Acks of what is out by then may add as many ranges again, which credit bounds; a report has them
all, or a record that was acknowledged would come again. A holder that was granted so many ranges
reads on until it has added `RANGES_ADDED_MAX`: nobody else can close the gaps.
"""

from collections import deque
from typing import Self

from dss_core.limits import ACKED_RANGES_MAX, FRAME_BYTES_USUAL
from dss_core.progress import (
    Progress,
    Ranges,
    clipped,
    complement,
    normalised,
    without,
)
from dssd.limits import (
    DELIVERY_READ_BYTES_MAX,
    RANGES_ADDED_MAX,
    RESTING_RANGES_MAX,
)
from dssd.machines.delivery.ack_wait import AckWaits
from dssd.machines.delivery.consumed import Consumed
from dssd.machines.delivery.durable_rests import DurableRests
from dssd.machines.delivery.events import ChunkRead, Deliver, Installed, Nak
from dssd.machines.delivery.frame_plan import CreditLeft, FrameSpans, Plan, plan, whole_frames
from dssd.machines.delivery.held_back import HeldBack
from dssd.machines.delivery.marking import Marking
from dssd.machines.delivery.outstanding import Outstanding, SentRange
from dssd.machines.delivery.read_trouble import ReadTrouble
from dssd.machines.delivery.retry import Resting, backoff_ms
from dssd.machines.fate import Fate
from dssd.machines.messages import Stall, StreamReport

NEVER_HELD = 1 << 62


class DeliveredStream:
    """The state of one grant. Owned by the delivery window."""

    def __init__(
        self, installed: Installed, credit_records: int, resting: Resting, now_ms: int
    ) -> None:
        granted = installed.granted
        self.grant = installed.grant
        self.subscription = installed.subscription
        self.stream = granted.stream
        self.grant_epoch = granted.grant_epoch
        self.consumed = Consumed(granted.progress, granted.fate)
        self.first = granted.progress.floor
        self.cursor = granted.progress.floor
        self.sent = granted.progress.floor
        self.frontier = granted.progress.floor
        """As this client reported it; it does not know what holders before it did."""
        self.out = Outstanding()
        self.marking = Marking(granted, credit_records)
        self.resting = resting
        self.rests = DurableRests(granted.fate.rests, installed.wall_ahead_ms, now_ms)
        self.waiting = HeldBack.of_grant(self.rests, self.marking.doubts(), now_ms)
        self.held_back = self.waiting.ranges()
        """The cursor passes by: they were not sent yet, and come in their own time."""
        self.waits = AckWaits(installed.ack_wait_ms)
        self.chunk: ChunkRead | None = None
        self.spans: FrameSpans | None = None
        """The chunk's frames, once it had to be cut."""
        self.chunk_at = 0
        self.chunk_end = 0
        self.resending = False
        """The chunk, or the read that will bring it, serves what is due again."""
        self.reading = False
        self.at_tail = False
        self.grown = False
        self.queue: deque[Self] | None = None
        """Where it waits to read or to send."""
        self.ending = False
        self.revoke_until_ms: int | None = None
        self.stall = Stall.NONE
        self._stall_at_damage = installed.stall_at_damage
        self.trouble = ReadTrouble()
        self.gone: Ranges = ()
        """Was due and is lost; the client is not told yet."""
        self._held_at = NEVER_HELD
        """The cursor waits while so many suspects are out."""
        ranges = granted.progress.ranges
        self._ranges_max = max(ACKED_RANGES_MAX, len(ranges) + RANGES_ADDED_MAX)

    @property
    def progress(self) -> Progress:
        """How far it is consumed."""
        return self.consumed.progress

    # Reading

    def read_offset(self) -> int | None:
        """Where to read next, or None where nothing is to be read now."""
        if self.reading or self.chunk is not None or self.ending:
            return None
        if self.trouble.again_ms is not None:
            return None
        due = self.resting.due()
        if due is not None:
            self.resending = True
            return due[0]
        if self.at_tail or self._cursor_held():
            return None
        self.resending = False
        if self.progress.ranges:
            # What is done already is not read: it may be what cannot be.
            self.cursor = self.sent = self.progress.first_unacked(self.cursor)
        return self.cursor

    def read_bytes_max(self) -> int:
        """How much to read: of what comes again, about a frame for each range that is due."""
        if not self.resending:
            return DELIVERY_READ_BYTES_MAX
        return min(self.resting.due_ranges * FRAME_BYTES_USUAL, DELIVERY_READ_BYTES_MAX)

    def take_chunk(self, chunk: ChunkRead) -> bool:
        """Take what was read; whether there is something to send."""
        self.reading = False
        if self.ending:
            return False
        self.trouble.over()
        if self.resending:
            self._take_again(chunk)
        elif chunk.next > chunk.offset:
            self._take_on(chunk)
        else:
            self.at_tail = not self.grown
        self.grown = False
        return self.chunk is not None

    def read_failed(self, now_ms: int, trouble: Stall) -> None:
        """The read failed, or met damage at which to stop: it is tried again later."""
        self.reading = False
        if not self.ending:
            self.trouble.met(trouble, now_ms)
            if self.resending:
                self.resting.pass_by()

    def not_done(self, ranges: Ranges) -> Ranges:
        """What of these disjoint ranges the group is not done with."""
        return without(ranges, self.consumed.done())

    def stops_at(self, chunk: ChunkRead) -> bool:
        """Whether the group wants to stop at what is damaged there."""
        return self._stall_at_damage and bool(self.not_done(chunk.damaged))

    def end(self, until_ms: int | None) -> None:
        """Send nothing more; until the time, what is out may still be settled."""
        self.ending = True
        self.revoke_until_ms = until_ms
        self.resting.clear()
        self.waits.clear()

    @property
    def finished(self) -> bool:
        """Its final report was made."""
        return self.ending and self.revoke_until_ms is None

    def grow(self) -> None:
        """The stream has more records."""
        self.at_tail = False
        self.grown = self.reading

    def forget_chunk(self) -> None:
        """Drop what was read and not sent; it is read again when its time comes."""
        self.chunk = None
        self.spans = None

    def _take_on(self, chunk: ChunkRead) -> None:
        self._held_at = NEVER_HELD
        if not chunk.frames:
            self.consumed.pass_by(chunk, ((chunk.offset, chunk.next),))
            self.cursor = chunk.next
            return
        if chunk.base > chunk.offset:
            self.consumed.pass_by(chunk, ((chunk.offset, chunk.base),))
        self.chunk = chunk
        self.chunk_at = max(chunk.offset, chunk.base)
        self.chunk_end = chunk.base + chunk.records

    def _take_again(self, chunk: ChunkRead) -> None:
        start, end = chunk.offset, min(chunk.base + chunk.records, self.cursor)
        lost = self.resting.due_in(start, self._lost_below(chunk))
        if lost:
            self.consumed.pass_by(chunk, lost, "lost")
            self._gone(lost)
            self.resting.took(start, lost[-1][1])
        if chunk.frames and self.resting.due_in(start, end):
            self.chunk = chunk
            self.chunk_at = max(start, chunk.base)
            self.chunk_end = end

    def _lost_below(self, chunk: ChunkRead) -> int:
        """Records from where it was read up to here are gone: retention took them, or damage."""
        if chunk.frames:
            return chunk.base
        due = self.resting.due_in(chunk.offset, NEVER_HELD)
        # Read at its end, a stream has lost what it held there.
        return max(chunk.next, due[0][1]) if due and chunk.next <= chunk.offset else chunk.next

    # Sending

    @property
    def fresh(self) -> bool:
        """Whether all that is left of the chunk is new: none is masked, acked or suspect."""
        chunk = self.chunk
        return (
            chunk is not None
            and not chunk.mask
            and not self.resending
            and self.chunk_at >= self.marking.fresh_from
        )

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
        self.out.add(SentRange(start, end, (), end - start, len(frames)))
        self._advance(chunk, end)
        return Deliver(self.grant, frames, (), False, 1, start, end)

    def send_part(self, spans: FrameSpans, room: CreditLeft) -> Deliver | None:
        """Send what the credit allows of the chunk, or nothing; the chunk ends when it is through.

        The chunk is dropped where the stream itself must wait.
        """
        chunk = self.chunk
        assert chunk is not None
        start, end = self.chunk_at, self.chunk_end
        closed = self._closed(chunk, start, end)
        if self.resending:
            return self._send_again(chunk, spans, closed, room)
        wanted = complement(closed, start, end)
        if self.held_back:
            wanted = without(wanted, self.held_back)
        if not wanted:
            self._advance(chunk, end)
            return None
        stretch = self.marking.first_stretch(wanted, self.frontier, self.out)
        if stretch.records_max <= 0:
            self._held_at = self.out.suspects
            self.forget_chunk()
            return None
        planned = plan(spans, wanted, stretch, room)
        self._note_out(planned)
        sent_to = planned.picked[-1][1]
        self._advance(chunk, end if sent_to >= wanted[-1][1] else sent_to)
        return self._delivery(chunk, planned)

    def _closed(self, chunk: ChunkRead, start: int, end: int) -> Ranges:
        """What of the chunk is acknowledged, or not for the user."""
        mask, acked = clipped(chunk.mask, start, end), clipped(self.progress.ranges, start, end)
        if self.progress.floor <= start and not (mask and acked):
            return mask or acked
        return normalised((*mask, (start, self.progress.floor), *acked))

    def _send_again(
        self, chunk: ChunkRead, spans: FrameSpans, closed: Ranges, room: CreditLeft
    ) -> Deliver | None:
        """Send what is due in the chunk and has the mark of the first of it."""
        start, end = self.chunk_at, self.chunk_end
        due = self.resting.due_in(start, end)
        wanted = without(due, closed)
        if not wanted:
            self._took_again(chunk, ())
            return None
        same, stretch = self.marking.of_one_mark(wanted, self.frontier)
        planned = plan(spans, same, stretch, room)
        self._note_out(planned)
        self._no_longer_held_back(planned.picked)
        self._took_again(chunk, without(wanted, planned.picked))
        return self._delivery(chunk, planned)

    def _took_again(self, chunk: ChunkRead, left: Ranges) -> None:
        """What was due in the chunk went, but for what is left."""
        if chunk.mask:
            self.consumed.reject(clipped(chunk.mask, self.chunk_at, self.chunk_end))
        self.resting.took(self.chunk_at, self.chunk_end, left)
        if left:
            self.chunk_at = left[0][0]
        else:
            self.forget_chunk()

    def _delivery(self, chunk: ChunkRead, planned: Plan) -> Deliver:
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

    def _note_out(self, planned: Plan) -> None:
        again = self.resending
        suspects_max = 0 if again else self.marking.suspects_max(planned.attempt, planned.doubts)
        left = planned.size
        for start, end, unsure in self.marking.sendings(planned.picked, self.frontier, again):
            # Each range on its own: what is settled one by one is found without a look at the rest.
            size = planned.size * (end - start) // planned.records
            left -= size
            last = left if end == planned.picked[-1][1] else 0
            sent = SentRange(start, end, (), end - start, size + last, unsure, suspects_max, again)
            self.out.add(sent)

    def _advance(self, chunk: ChunkRead, to: int) -> None:
        if chunk.mask:
            self.consumed.reject(clipped(chunk.mask, self.chunk_at, to))
        done = to >= self.chunk_end
        if done:
            self.consumed.pass_by(chunk, ((to, chunk.next),))
            to = chunk.next
        self.cursor = self.sent = to
        self.chunk_at = to
        if done:
            self.forget_chunk()

    def _gone(self, ranges: Ranges) -> None:
        """What was due is not there any more."""
        self.gone = normalised((*self.gone, *ranges))
        self._no_longer_held_back(ranges)
        for start, end in ranges:
            self.waiting.settled(start, end)

    def _no_longer_held_back(self, ranges: Ranges) -> None:
        if self.held_back:
            self.held_back = without(self.held_back, ranges)

    # Settling

    def ack(self, acked: Ranges) -> list[SentRange]:
        """Take acknowledged ranges; returns what was out of them: its credit comes back."""
        freed: list[SentRange] = []
        for start, end in acked:
            freed.extend(self.out.take(start, end))
            self.marking.forget(start, end)
            self.waiting.settled(start, end)
        self.consumed.ack(acked)
        self.waits.settled_below(self.progress.floor)
        return freed

    def raise_frontier(self, frontier: int, now_ms: int) -> None:
        """The client handed out more: count it, and begin its ack wait."""
        frontier = min(frontier, self.sent)
        before = self.frontier
        if frontier <= before:
            return
        handed = self.marking.note_handed_out(self.progress, before, frontier, self.held_back)
        self.frontier = frontier
        floor = self.progress.floor
        if frontier > floor and not self.ending:
            for start, end in handed:
                if end > floor:
                    self.waits.handed_out(max(start, floor), end, now_ms)

    def hand_out(self, start: int, end: int, now_ms: int) -> None:
        """The client handed out records above its frontier, or below it and again."""
        for sent in self.out.take(start, end):
            if sent.unsure:
                self.marking.note_handed_out_again(sent, self.frontier)
                sent.unsure = False
            elif sent.end > self.frontier:
                self.marking.note_handed_out_early(max(sent.start, self.frontier), sent.end)
            self.out.add(sent)
            if not self.ending:
                self.waits.handed_out(sent.start, sent.end, now_ms)

    def refuse(self, nak: Nak, now_ms: int) -> list[SentRange]:
        """Let naked records rest; returns those whose credit comes back."""
        freed = self._rest_handed_out(nak.start, nak.end, now_ms, nak.delay_ms)
        self.resting.wake(now_ms)
        return freed

    def renew(self, start: int, end: int, now_ms: int) -> None:
        """The ack wait of a range begins anew."""
        if self.ending:
            return
        for low, high in self.out.within(start, end):
            self.waits.handed_out(low, high, now_ms)

    def expire(self, now_ms: int, *, blamed: bool) -> list[SentRange]:
        """Let records rest whose ack wait ran out; returns those whose credit comes back.

        Not blamed, they are due at once, and that is no failure of theirs.
        """
        freed: list[SentRange] = []
        for start, end in self.waits.expired(now_ms):
            freed += self._rest_handed_out(start, end, now_ms, None if blamed else 0, blamed)
        return freed

    def _rest_handed_out(
        self, start: int, end: int, now_ms: int, delay_ms: int | None, failed: bool = True
    ) -> list[SentRange]:
        freed: list[SentRange] = []
        for sent in self.out.take(start, end):
            if sent.unsure:
                # This is about the sending before; the record is on its way again already.
                self.out.add(sent)
            else:
                if failed:
                    self._note_failed(sent)
                self._rest(sent, now_ms, delay_ms)
                freed.append(sent)
        return freed

    def _rest(self, sent: SentRange, now_ms: int, delay_ms: int | None) -> None:
        for start, end in complement(sent.gaps, sent.start, sent.end):
            self.waiting.settled(start, end)
            if delay_ms is not None:
                self.rests.rest(start, end, now_ms, delay_ms)
            if self.ending:
                continue
            for low, high, count in self.marking.counted(start, end, self.frontier):
                rest_ms = backoff_ms(count) if delay_ms is None else delay_ms
                self.resting.rest(low, high, now_ms + rest_ms)

    def _note_failed(self, sent: SentRange) -> None:
        for start, end in complement(sent.gaps, sent.start, sent.end):
            self.marking.note_failed(start, end)

    def wake(self, now_ms: int) -> None:
        """Make due what has rested long enough, and read again what could not be read."""
        self.rests.wake(now_ms)
        for start, end in self.waiting.release(self.progress, self.cursor, now_ms):
            self.resting.rest(start, end, now_ms)
        self.resting.wake(now_ms)
        self.trouble.wake(now_ms)

    def end_in_doubt(self, *, alone: bool) -> list[SentRange]:
        """The client vanished: what was out may have been handed out; returns it.

        Alone: nothing else was out with the client, so it vanished because of this.
        """
        left = self.out.take_all()
        for sent in left:
            for start, end in complement(sent.gaps, sent.start, sent.end):
                self.marking.note_doubt(start, end)
                if not sent.unsure:
                    self.marking.note_in_doubt(start, end, self.frontier)
            if alone:
                self._note_failed(sent)
            if sent.unsure:
                self.marking.note_handed_out_again(sent, self.frontier)
        return left

    # Reporting

    def report(self, *, sent: int | None = None) -> StreamReport:
        """How the grant stands."""
        return StreamReport(
            self.stream,
            self.grant_epoch,
            self.progress,
            self.handed_out(),
            self.marking.attempts(),
            sent,
            self.stall,
            self._fate(),
        )

    def _fate(self) -> Fate:
        rests = self.rests.told(self.progress)
        done = self.consumed
        marking = self.marking
        return Fate(marking.failures(), marking.doubts(), rests, done.damaged, done.counts)

    def handed_out(self) -> int:
        """Every offset below it was handed out, by this holder or one before, or is settled."""
        return max(self.marking.known_below(self.frontier), self.progress.floor)

    def stalled_by(self) -> Stall:
        """Why nothing of it is delivered, if that is so."""
        if self.trouble.stall is not Stall.NONE:
            return self.trouble.stall
        ranges = len(self.progress.ranges)
        return Stall.UNACKED if ranges >= ACKED_RANGES_MAX // 2 and self.capped() else Stall.NONE

    def capped(self) -> bool:
        """Whether too much lies unacknowledged between acknowledged records."""
        ranges, out = len(self.progress.ranges), self.out.records
        if ranges >= self._ranges_max or len(self.resting) >= RESTING_RANGES_MAX:
            return True
        # Lent near the cap, it may add a few only, or each holder would add half its credit: and
        # each record that is out may become an island between two acked ranges.
        lent_near = self._ranges_max > ACKED_RANGES_MAX
        return bool(lent_near and out and ranges and ranges + out >= self._ranges_max)

    def _cursor_held(self) -> bool:
        return self.out.suspects >= self._held_at or self.capped()

    def next_ms(self) -> int | None:
        """The earliest time at which something of it is due."""
        if self.ending:
            return self.revoke_until_ms
        times = (
            self.waits.next_ms(),
            self.resting.next_ms(),
            self.waiting.next_ms(self.cursor),
            self.trouble.again_ms,
        )
        return min((at_ms for at_ms in times if at_ms is not None), default=None)
