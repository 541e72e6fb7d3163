"""The records of one grant: which are done, out, resting or held back, and who handed out what.

Each offset below the cursor is in exactly one state: acknowledged, out (`Outstanding`), or resting
until it is sent again (`Resting`). Settles and expired waits change these states here, and reports
to the group are made from them. A stream that was lent before begins at its floor; `Marking` knows
what was handed out before. Invariant: what is sent is noted as out. This module must not know how
records are read.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from dss_core.progress import Progress, Ranges, clipped, complement, normalised, without
from dssd.machines.delivery.ack_wait import AckWaits
from dssd.machines.delivery.consumed import Consumed
from dssd.machines.delivery.durable_rests import DurableRests
from dssd.machines.delivery.events import ChunkRead, Installed, Nak
from dssd.machines.delivery.frame_plan import DeliveryPlan
from dssd.machines.delivery.held_back import HeldBack
from dssd.machines.delivery.marking import Marking
from dssd.machines.delivery.outstanding import Outstanding, SentRange
from dssd.machines.delivery.retry import Rest, Resting, backoff_ms
from dssd.machines.fate import Fate


class Failed(NamedTuple):
    """Records that failed: the client refused them, or their ack wait ran out."""

    start: int
    end: int
    nak: Nak | None
    size: int
    """In bytes, all of them."""


class RecordStates:
    """What is known of one grant's records."""

    def __init__(
        self, installed: Installed, credit_records: int, resting: Resting, now_ms: int
    ) -> None:
        granted = installed.granted
        self.consumed = Consumed(granted.progress, granted.fate)
        self.first = granted.progress.floor
        self.sent = granted.progress.floor
        self.frontier = granted.progress.floor
        """The frontier that this client reported; earlier holders have no part in it."""
        self.out = Outstanding()
        self.marking = Marking(granted, credit_records)
        self.resting = resting
        self.rests = DurableRests(granted.fate.rests, installed.wall_ahead_ms, now_ms)
        self.waiting = HeldBack.of_grant(self.rests, self.marking.doubts(), now_ms)
        self.held_back = self.waiting.ranges()
        """Records that the cursor skips: not sent yet, and due at a time of their own."""
        self.waits = AckWaits(installed.ack_wait_ms)
        self.ending = False
        """Nothing more is sent."""
        self.failed: list[Failed] | None = None
        """Records that failed, for the lane to take. None: there is no lane, and they rest here."""
        self.moving = 0
        """Of a lane: how many ranges wait for a move."""
        self.following = 0
        """Of an ordered lane: how many records wait to be moved behind their keys."""
        self.spared: Ranges = ()
        """Of a lane: records whose ack wait ran out in a pause, and that were not sent since."""
        self.sealed_end: int | None = None
        """Of the stream of an ordered lane: where it ends."""
        self._renewed_until_ms: int | None = None
        self.suspects_rest_ms: Callable[[int], int] = backoff_ms
        """How long a record rests before it is sent alone, by how many clients vanished with it."""

    @property
    def progress(self) -> Progress:
        """How far it is consumed."""
        return self.consumed.progress

    def end(self) -> None:
        """Send nothing more; what is out may still be settled."""
        self.ending = True
        self.resting.clear()
        self.waits.clear()

    def not_done(self, ranges: Ranges) -> Ranges:
        """The parts of these disjoint ranges that are not done."""
        return without(ranges, self.consumed.done())

    def closed(self, chunk: ChunkRead, start: int, end: int) -> Ranges:
        """The records of the chunk that are acknowledged, or masked."""
        mask, acked = clipped(chunk.mask, start, end), clipped(self.progress.ranges, start, end)
        if self.progress.floor <= start and not (mask and acked):
            return mask or acked
        return normalised((*mask, (start, self.progress.floor), *acked))

    # Sending

    def note_out(self, planned: DeliveryPlan, *, again: bool) -> None:
        """A delivery is sent; ``again``: once more under this grant."""
        suspects_max = 0 if again else self.marking.suspects_max(planned.attempt, planned.doubts)
        left = planned.size
        for start, end, unsure in self.marking.sendings(planned.picked, self.frontier, again):
            # Each range on its own: a settle of one record need not go through the others.
            size = planned.size * (end - start) // planned.records
            left -= size
            last = left if end == planned.picked[-1][1] else 0
            sent = SentRange(start, end, size + last, unsure, suspects_max, again)
            self.out.add(sent)
        self._spare_no_longer(planned.picked)

    def _spare_no_longer(self, ranges: Ranges) -> None:
        if self.spared:
            self.spared = without(self.spared, normalised(ranges))

    def no_longer_held_back(self, ranges: Ranges) -> None:
        """The records no longer wait for a time of their own."""
        if self.held_back:
            self.held_back = without(self.held_back, ranges)

    def lost(self, ranges: Ranges) -> None:
        """Records that were due no longer exist."""
        self.no_longer_held_back(ranges)
        for start, end in ranges:
            self.waiting.settled(start, end)

    def moved(self, ranges: Ranges) -> None:
        """The records are in a queue, and done here."""
        self._close(ranges, "retried")

    def lose(self, ranges: Ranges) -> None:
        """Records that were to be moved no longer exist."""
        self.lost(ranges)
        self._close(ranges, "lost")

    def pass_over(self, ranges: Ranges) -> None:
        """An operator passes over the records: nobody gets them."""
        self.lost(ranges)
        self._close(ranges, "moved")

    def _close(self, ranges: Ranges, kind: str) -> None:
        self.no_longer_held_back(ranges)
        for start, end in ranges:
            self.marking.forget(start, end)
            self.waiting.settled(start, end)
        self.consumed.close(ranges, kind)
        self.waits.settled_below(self.progress.floor)

    # Settling

    def ack(self, acked: Ranges) -> list[SentRange]:
        """Acknowledge ranges; returns the part that was out: its credit comes back."""
        freed: list[SentRange] = []
        for start, end in acked:
            freed.extend(self.out.take(start, end))
            self.marking.forget(start, end)
            self.waiting.settled(start, end)
        self.consumed.ack(acked)
        self._spare_no_longer(acked)
        self.waits.settled_below(self.progress.floor)
        return freed

    def raise_frontier(self, frontier: int, now_ms: int) -> None:
        """The client handed out more: count attempts, and begin the ack waits."""
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
        """The client handed out records above its frontier, or once more below it."""
        for sent in self.out.take(start, end):
            if sent.unsure:
                self.marking.note_handed_out_again(sent, self.frontier)
                sent.unsure = False
            elif sent.end > self.frontier:
                self.marking.note_handed_out_early(max(sent.start, self.frontier), sent.end)
            self.out.add(sent)
            if not self.ending:
                self.waits.handed_out(sent.start, sent.end, now_ms)

    def refuse(self, naks: Iterable[Nak], now_ms: int) -> list[SentRange]:
        """Let naked records rest; returns those whose credit comes back."""
        freed: list[SentRange] = []
        late: list[Nak] = []
        for nak in naks:
            out = self._rest_handed_out(nak.start, nak.end, now_ms, nak.delay_ms, nak)
            if nak.delay_ms is not None and sum(each.records for each in out) < nak.end - nak.start:
                late.append(nak)
            freed += out
        if late:
            self._put_off(late, now_ms)
        self.resting.wake(now_ms)
        return freed

    def _put_off(self, late: list[Nak], now_ms: int) -> None:
        """Apply the delays of naks that came after the ack wait, to records that still rest.

        Of two delays that a user chose, the first counts.
        """
        chosen = self.rests.ranges()
        ranges: list[Rest] = []
        at = 0
        for start, end, delay_ms in sorted((nak.start, nak.end, nak.delay_ms or 0) for nak in late):
            fresh = complement(chosen, max(at, start), end)
            ranges += ((low, high, now_ms + delay_ms) for low, high in fresh)
            at = max(at, end)
        for start, end, until_ms in self.resting.put_off(ranges):
            self.rests.rest(start, end, now_ms, until_ms - now_ms)

    def renew(self, start: int, end: int, now_ms: int) -> None:
        """The ack wait of a range begins anew.

        Once all of a sealed stream is sent, for one more ack wait only: other streams wait for it.
        """
        if self.ending:
            return
        if self.sealed_end is not None and self.sent >= self.sealed_end:
            if self._renewed_until_ms is None:
                self._renewed_until_ms = now_ms + self.waits.wait_ms
            if now_ms >= self._renewed_until_ms:
                return
        for low, high in self.out.within(start, end):
            self.waits.handed_out(low, high, now_ms)

    def expire(self, now_ms: int, *, blamed: bool) -> list[SentRange]:
        """Let records rest whose ack wait ran out; returns those whose credit comes back.

        Where they are not blamed, they are due at once, and no failure is counted.
        """
        freed: list[SentRange] = []
        for start, end in self.waits.expired(now_ms):
            delay_ms = None if blamed else 0
            freed += self._rest_handed_out(start, end, now_ms, delay_ms, failed=blamed)
        if self.failed is not None and not blamed:
            rests = ((sent.start, sent.end) for sent in freed)
            self.spared = normalised((*self.spared, *rests))
        return freed

    def fail(self, start: int, end: int, now_ms: int) -> list[SentRange]:
        """Their ack wait ran out, and no ack came; returns those whose credit comes back."""
        return self._rest_handed_out(start, end, now_ms, None)

    def _rest_handed_out(
        self,
        start: int,
        end: int,
        now_ms: int,
        delay_ms: int | None,
        nak: Nak | None = None,
        *,
        failed: bool = True,
    ) -> list[SentRange]:
        freed: list[SentRange] = []
        for sent in self.out.take(start, end):
            if sent.unsure:
                # The settle is about the earlier sending; the record was sent again already.
                self.out.add(sent)
                continue
            if failed and self.failed is None:
                self.marking.note_failed(sent.start, sent.end)
            if failed and self.failed is not None:
                self.waiting.settled(sent.start, sent.end)
                if delay_ms is not None:
                    # Stored until the record is moved: the holder may be gone before that.
                    self.rests.rest(sent.start, sent.end, now_ms, delay_ms)
                self.failed.append(Failed(sent.start, sent.end, nak, sent.bytes))
            else:
                self._rest(sent, now_ms, delay_ms)
            freed.append(sent)
        return freed

    def rest(self, start: int, end: int, until_ms: int) -> None:
        """The records rest until the time, and are then sent again."""
        if not self.ending:
            self.resting.rest(start, end, until_ms)

    def _rest(self, sent: SentRange, now_ms: int, delay_ms: int | None) -> None:
        start, end = sent.start, sent.end
        self.waiting.settled(start, end)
        if delay_ms is not None:
            self.rests.rest(start, end, now_ms, delay_ms)
        if self.ending:
            return
        for low, high, count in self.marking.counted(start, end, self.frontier):
            rest_ms = backoff_ms(count) if delay_ms is None else delay_ms
            self.resting.rest(low, high, now_ms + rest_ms)

    def wake(self, cursor: int, now_ms: int) -> None:
        """Make due what has rested long enough."""
        self.rests.wake(now_ms)
        for start, end in self.waiting.release(self.progress, cursor, now_ms):
            self.resting.rest(start, end, now_ms)
        self.resting.wake(now_ms)

    def end_unanswered(self) -> list[SentRange]:
        """The client did not say before the end of a revoke how far it came; returns what was out.

        These records may have been handed out, but nothing says that the client died of them.
        """
        left = self.out.take_all()
        for sent in left:
            if sent.unsure:
                self.marking.note_handed_out_again(sent, self.frontier)
            else:
                self.marking.note_in_doubt(sent.start, sent.end, self.frontier)
        return left

    @property
    def suspect_out(self) -> bool:
        """Whether a suspect of a lane is with the client."""
        at = self.waiting.alone
        return at is not None and self.failed is not None and bool(self.out.within(at, at + 1))

    def end_vanished(self, now_ms: int, *, alone: bool, blamed: bool = False) -> list[SentRange]:
        """The client vanished: it may have died of what was out; returns it.

        Alone: a single record was out with the client, so the client died of it. Blamed: of the
        client's suspects, only that of this stream was out.
        """
        suspect = self.waiting.alone
        if blamed and not alone and suspect is not None:
            self.marking.note_failed(suspect, suspect + 1)
        left = self.end_unanswered()
        self.rests.wake(now_ms)
        for sent in left:
            self.marking.note_doubt(sent.start, sent.end)
            for low, high, doubts in self.marking.suspects(sent.start, sent.end):
                self.rests.rest(low, high, now_ms, self.suspects_rest_ms(doubts))
            if alone:
                self.marking.note_failed(sent.start, sent.end)
        return left

    # Reporting

    def fate(self) -> Fate:
        """The fate of the records, for a report of the group protocol."""
        rests = self.rests.told(self.progress)
        done = self.consumed
        marking = self.marking
        return Fate(marking.failures(), marking.doubts(), rests, done.damaged, done.counts)

    def handed_out(self) -> int:
        """Every offset below it was handed out, by this holder or one before, or is settled."""
        return max(self.marking.known_below(self.frontier), self.progress.floor)
