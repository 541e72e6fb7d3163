"""The reading of one grant's stream: what is read next, and what a read leaves to be sent.

::

    floor        frontier        sent = cursor
      |  handed out  |  in the client's buffer  |  not read yet
      #####.##..#####|..........................|

Offsets below the cursor are acknowledged, out (`Outstanding`) or resting until they come again
(`Resting`), exactly one of them. The cursor takes each offset once, those that are done without a
read; what comes again is read once more on its own, before new records. Records that the filter
rejects, that retention took or that are damaged count as acknowledged once the cursor has passed
them.

At `ACKED_RANGES_MAX` acked ranges nothing more is read until the user closes gaps between them.
Acks of what is out by then may add as many ranges again, which credit bounds; a report has them
all, or a record that was acknowledged would come again. A holder that was granted so many ranges
reads on until it has added `RANGES_ADDED_MAX`: nobody else can close the gaps.

This layer must not know what is sent to the client, nor what it says.
"""

from collections import deque
from typing import Self

from dss_core.limits import ACKED_RANGES_MAX, FRAME_BYTES_USUAL
from dss_core.progress import (
    Progress,
    Ranges,
    clipped,
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
from dssd.machines.delivery.events import ChunkRead, Installed
from dssd.machines.delivery.frame_plan import FrameSpans
from dssd.machines.delivery.held_back import HeldBack
from dssd.machines.delivery.marking import Marking
from dssd.machines.delivery.outstanding import Outstanding
from dssd.machines.delivery.read_trouble import ReadTrouble
from dssd.machines.delivery.retry import Resting
from dssd.machines.messages import Stall

NEVER_HELD = 1 << 62


class StreamReading:
    """The state of one grant, and how its stream is read."""

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
        """Since what is being read, or was and waits to be sent, was asked for."""
        self.queue: deque[Self] | None = None
        """Where it waits to read or to send."""
        self.ending = False
        self.revoke_until_ms: int | None = None
        self.stall = Stall.NONE
        self.stall_at_damage = installed.stall_at_damage
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
        if self.progress.ranges or self.cursor < self.progress.floor:
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
            self._note_end(chunk)
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

    def as_far_as_it_goes(self, chunk: ChunkRead) -> ChunkRead | None:
        """The chunk, or what the group takes of it that stops before damage; None for nothing."""
        met = self.not_done(chunk.damaged) if self.stall_at_damage else ()
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
        self.grown = self.reading or self.chunk is not None

    def forget_chunk(self) -> None:
        """Drop what was read and not sent; it is read again when its time comes."""
        self.chunk = None
        self.spans = None

    def _take_on(self, chunk: ChunkRead) -> None:
        self._held_at = NEVER_HELD
        if not chunk.frames:
            self.consumed.pass_by(chunk, ((chunk.offset, chunk.next),))
            self.cursor = chunk.next
            self._note_end(chunk)
            return
        if chunk.base > chunk.offset:
            self.consumed.pass_by(chunk, ((chunk.offset, chunk.base),))
        self.chunk = chunk
        self.chunk_at = max(chunk.offset, chunk.base)
        self.chunk_end = chunk.base + chunk.records

    def _note_end(self, chunk: ChunkRead) -> None:
        """The cursor is behind all that was read: another read of the end would find nothing."""
        ends = chunk.at_end or chunk.next <= chunk.offset
        self.at_tail = ends and not self.grown
        self.grown = False

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

    def _gone(self, ranges: Ranges) -> None:
        """What was due is not there any more."""
        self.gone = normalised((*self.gone, *ranges))
        self._no_longer_held_back(ranges)
        for start, end in ranges:
            self.waiting.settled(start, end)

    def _no_longer_held_back(self, ranges: Ranges) -> None:
        if self.held_back:
            self.held_back = without(self.held_back, ranges)

    def capped(self) -> bool:
        """Whether too much lies unacknowledged between acknowledged records."""
        ranges, out = len(self.progress.ranges), self.out.records
        if ranges >= self._ranges_max or len(self.resting) >= RESTING_RANGES_MAX:
            return True
        # Lent near the cap, it may add a few only, or each holder would add half its credit: and
        # each record that is out may become an island between two acked ranges.
        lent_near = self._ranges_max > ACKED_RANGES_MAX
        return bool(lent_near and out and ranges and ranges + out >= self._ranges_max)

    def suspects_hold_cursor(self) -> bool:
        """Whether so many suspects are out that no more may go."""
        return self.out.suspects >= self._held_at

    def _cursor_held(self) -> bool:
        return self.suspects_hold_cursor() or self.capped()
