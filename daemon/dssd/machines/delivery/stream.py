"""One grant inside the delivery window: what of its stream was read, sent, handed out and acked.

Three layers, each of which knows those before it: reading (`reading`), sending (`sending`), and
here what the client and time say of what was sent, and what is reported of all.

A stream that was lent before begins at its floor; `Marking` knows what was handed out before.
"""

from collections.abc import Iterable

from dss_core.limits import ACKED_RANGES_MAX
from dss_core.progress import Ranges, complement
from dssd.machines.delivery.events import Nak
from dssd.machines.delivery.outstanding import SentRange
from dssd.machines.delivery.retry import Rest, backoff_ms
from dssd.machines.delivery.sending import StreamSending
from dssd.machines.fate import Fate
from dssd.machines.messages import Stall, StreamReport


class DeliveredStream(StreamSending):
    """The state of one grant. Owned by the delivery window."""

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

    def refuse(self, naks: Iterable[Nak], now_ms: int) -> list[SentRange]:
        """Let naked records rest; returns those whose credit comes back."""
        freed: list[SentRange] = []
        late: list[Nak] = []
        for nak in naks:
            out = self._rest_handed_out(nak.start, nak.end, now_ms, nak.delay_ms)
            if nak.delay_ms is not None and sum(each.records for each in out) < nak.end - nak.start:
                late.append(nak)
            freed += out
        if late:
            self._put_off(late, now_ms)
        self.resting.wake(now_ms)
        return freed

    def _put_off(self, late: list[Nak], now_ms: int) -> None:
        """Refused as their ack wait had run out: while they rest, the delay of the user counts.

        Of two delays that a user chose it is the first.
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
                    self.marking.note_failed(sent.start, sent.end)
                self._rest(sent, now_ms, delay_ms)
                freed.append(sent)
        return freed

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

    def wake(self, now_ms: int) -> None:
        """Make due what has rested long enough, and read again what could not be read."""
        self.rests.wake(now_ms)
        for start, end in self.waiting.release(self.progress, self.cursor, now_ms):
            self.resting.rest(start, end, now_ms)
        self.resting.wake(now_ms)
        self.trouble.wake(now_ms)

    def end_unanswered(self) -> list[SentRange]:
        """The client was asked and did not say how far it came; returns what was out.

        It may have been handed out, but nothing says that the client died of it.
        """
        left = self.out.take_all()
        for sent in left:
            if sent.unsure:
                self.marking.note_handed_out_again(sent, self.frontier)
            else:
                self.marking.note_in_doubt(sent.start, sent.end, self.frontier)
        return left

    def end_vanished(self, now_ms: int, *, alone: bool) -> list[SentRange]:
        """The client vanished: it may have died of what was out; returns it.

        Alone: nothing else was out with the client, so it vanished because of this.
        """
        left = self.end_unanswered()
        self.rests.wake(now_ms)
        for sent in left:
            self.marking.note_doubt(sent.start, sent.end)
            for low, high, doubts in self.marking.suspects(sent.start, sent.end):
                self.rests.rest(low, high, now_ms, backoff_ms(doubts))
            if alone:
                self.marking.note_failed(sent.start, sent.end)
        return left

    # Reporting

    def report(self, *, sent: int | None = None, is_awaited: bool = False) -> StreamReport:
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
            is_awaited,
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
