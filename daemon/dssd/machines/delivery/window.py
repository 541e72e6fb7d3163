"""The delivery window of a session: which records go to the client, and what it may still take.

A session has one credit, in records and bytes, for all its streams. It counts what was *sent* and
comes back at ack or nak, so a client that stops reading costs at most the credit. The streams that
have something take turns, a delivery each; a subscription takes at most half of the credit, and of
the reads, while others wait.

As long as any credit is left, the frame whose turn it is goes whole; so a large one waits no longer
than a small one, and a client that acks only when it has gathered as much as its credit gets it.

Invariants: what is out exceeds the credit by less than one frame. A record is out at most once at
a time, and what was sent stays out until the client settles it, drops it or has had it for longer
than the ack wait. An ack floor never falls. A stream that waits for
anything of its own (its cap, its suspects, a revoke) holds neither credit nor a place among the
reads. This module does not know the frame format: it is given the function that cuts frames.
"""

from collections.abc import Callable, Iterable

from dss_core.limits import ACKED_RANGES_MAX, CREDIT_BYTES, CREDIT_RECORDS
from dss_core.progress import Progress, Ranges
from dssd.limits import (
    DELIVERY_READ_BYTES_MAX,
    REPORT_INTERVAL_MS,
    REVOKE_REPORT_SHARE,
)
from dssd.machines.delivery.events import (
    AnswerSettled,
    ChunkRead,
    Closing,
    Deliver,
    DeliveryEffect,
    DeliveryInput,
    Draining,
    Dropped,
    Grown,
    Installed,
    Left,
    Read,
    RefuseGrant,
    RefuseRange,
    Report,
    Resumed,
    RevokeBegun,
    RevokeFinished,
    Saved,
    SendRevoke,
    Settle,
    Settles,
    ShowStalled,
    Suspended,
    Ticked,
    Unwanted,
)
from dssd.machines.delivery.fairness import RoundRobin, Share
from dssd.machines.delivery.frame_plan import CreditLeft, FrameSpans
from dssd.machines.delivery.outstanding import SentRange
from dssd.machines.delivery.stream import DeliveredStream, checked
from dssd.machines.delivery.sync_acks import DurableAcks

CutFrames = Callable[[bytes], FrameSpans]


class DeliveryWindow:
    """The machine: `step` takes an input and returns what to do, in order."""

    def __init__(
        self,
        cut_frames: CutFrames,
        *,
        credit_records: int = CREDIT_RECORDS,
        credit_bytes: int = CREDIT_BYTES,
    ) -> None:
        self.credit_records = credit_records
        self.credit_bytes = credit_bytes
        self.out_records = 0
        self.out_bytes = 0
        self.wake_at_ms: int | None = None
        """Feed `Ticked` then; read it anew after each step."""
        self._cut_frames = cut_frames
        self._lent: dict[int, DeliveredStream] = {}
        self._turns = RoundRobin()
        self._durable = DurableAcks()
        self._moved: set[int] = set()
        self._report_at_ms: int | None = None
        self._due_at_ms: int | None = None
        """Nothing of a stream is due before this."""
        self._draining = False
        self._now_ms = 0
        """Of the step under way."""
        self._effects: list[DeliveryEffect] = []

    def step(self, given: DeliveryInput, now_ms: int) -> list[DeliveryEffect]:
        """Take one input; returns what to do, in order."""
        effects: list[DeliveryEffect] = []
        self._effects = effects
        self._now_ms = now_ms
        _HANDLERS[type(given)](self, given, now_ms)
        self._send(now_ms)
        self._read()
        due, report = self._due_at_ms, self._report_at_ms
        self.wake_at_ms = report if due is None or (report is not None and report < due) else due
        return effects

    def lent(self) -> Iterable[DeliveredStream]:
        """The streams that it delivers, for those who look and change nothing."""
        return self._lent.values()

    @property
    def drained(self) -> bool:
        """Whether the client has settled all that it will, after `Draining`."""
        return all(lent.finished for lent in self._lent.values())

    # Inputs about grants

    def _installed(self, given: Installed, now_ms: int) -> None:
        assert given.grant not in self._lent, given
        lent = DeliveredStream(given, self.credit_records)
        self._lent[given.grant] = lent
        self._turns.enter(lent)
        self._durable.begin(given.grant, given.granted.progress)
        self._offer(lent)

    def _grown(self, given: Grown, now_ms: int) -> None:
        lent = self._lent.get(given.grant)
        if lent is not None:
            lent.grow()
            self._offer(lent)

    def _chunk_read(self, given: ChunkRead, now_ms: int) -> None:
        lent = self._lent.get(given.grant)
        self._turns.read_answered(lent)
        if lent is None:
            return
        before = lent.progress
        if lent.take_chunk(given) and not self._turns.share(lent.subscription).suspended:
            self._turns.hold(lent)
        else:
            lent.forget_chunk()
            self._offer(lent)
        if not lent.finished:
            self._note_moved(lent, before, now_ms)

    def _revoke_begun(self, given: RevokeBegun, now_ms: int) -> None:
        lent = self._lent.get(given.grant)
        if lent is None or lent.ending:
            return
        self._turns.withdraw(lent)
        lent.end(now_ms + int(given.deadline_ms * REVOKE_REPORT_SHARE))
        self._due_by(lent.revoke_until_ms)
        self._effects.append(SendRevoke(given.grant, given.deadline_ms))

    def _revoke_finished(self, given: RevokeFinished, now_ms: int) -> None:
        lent = self._lent.get(given.grant)
        if lent is None or lent.finished:
            self._effects.append(RefuseGrant(given.grant))
            return
        asked = lent.ending
        # The client has dropped what it did not hand out: nothing beyond the frontier is known.
        self._finish(lent, None)
        if not asked:
            self._effects.append(Unwanted(lent.subscription))

    def _finish(self, lent: DeliveredStream, sent: int | None) -> None:
        self._turns.withdraw(lent)
        lent.end(None)
        self._credit_back(lent, lent.out.take_all())
        self._moved.discard(lent.grant)
        lent.sent = lent.handed_out() if sent is None else sent
        if self._draining:
            # The stream is not given back: it is reported when the connection closes.
            return
        self._effects.append(Report(((lent.grant, lent.report(sent=sent)),), final=True))

    def _dropped(self, given: Dropped, now_ms: int) -> None:
        lent = self._lent.get(given.grant)
        if lent is not None:
            self._forget(lent)

    def _left(self, given: Left, now_ms: int) -> None:
        self._turns.share(given.subscription).left = True
        self._turns.forget_left(given.subscription)

    def _drain(self, given: Draining, now_ms: int) -> None:
        self._draining = True
        for grant in sorted(self._lent):
            self._revoke_begun(RevokeBegun(grant, given.deadline_ms), now_ms)

    def _closing(self, given: Closing, now_ms: int) -> None:
        reports = tuple((grant, lent.report(sent=lent.sent)) for grant, lent in self._lent.items())
        if reports:
            self._effects.append(Report(reports))
        for lent in list(self._lent.values()):
            self._forget(lent)

    def _suspended(self, given: Suspended, now_ms: int) -> None:
        share = self._turns.share(given.subscription)
        share.suspended = True
        for grant in share.grants:
            self._turns.withdraw(self._lent[grant])

    def _resumed(self, given: Resumed, now_ms: int) -> None:
        share = self._turns.share(given.subscription)
        share.suspended = False
        for grant in sorted(share.grants):
            self._offer(self._lent[grant])

    # Inputs about records

    def _settles(self, given: Settles, now_ms: int) -> None:
        for settle in given.settles:
            self._settle(settle, now_ms)

    def _settle(self, given: Settle, now_ms: int) -> None:
        lent = self._lent.get(given.grant)
        if lent is None or lent.finished:
            self._effects.append(RefuseGrant(given.grant))
            return
        before = lent.progress
        acked = self._checked(lent, given.acked) if given.acked else ()
        if acked:
            self._credit_back(lent, lent.ack(acked))
        frontier = lent.frontier
        if given.frontier > frontier:
            lent.raise_frontier(given.frontier, now_ms)
        for start, end in self._checked(lent, given.in_progress) if given.in_progress else ():
            lent.renew(start, end, now_ms)
        if given.naks:
            self._refuse(lent, given, now_ms)
        if given.token:
            # Not only what came with the token: what was acked before may not be durable yet.
            self._answer(self._durable.wait(given.grant, given.token, lent.acked()))
        self._note_moved(lent, before, now_ms, moved=bool(given.naks) or lent.frontier != frontier)
        self._due_by(lent.next_ms())
        self._offer(lent)

    def _refuse(self, lent: DeliveredStream, given: Settle, now_ms: int) -> None:
        for nak in given.naks:
            if self._checked(lent, ((nak.start, nak.end),)):
                self._credit_back(lent, lent.refuse(nak, now_ms))

    def _checked(self, lent: DeliveredStream, ranges: Ranges) -> Ranges:
        good, bad = checked(ranges, lent.first, lent.sent)
        if bad is not None:
            self._effects.append(RefuseRange(lent.grant, *bad))
        return good

    def _saved(self, given: Saved, now_ms: int) -> None:
        self._answer(self._durable.saved(given.grant, given.progress))

    def _answer(self, tokens: list[int]) -> None:
        self._effects.extend(AnswerSettled(token) for token in tokens)

    # Time

    def _ticked(self, given: Ticked, now_ms: int) -> None:
        if self._report_at_ms is not None and now_ms >= self._report_at_ms:
            self._report()
        if self._due_at_ms is None or now_ms < self._due_at_ms:
            return
        self._due_at_ms = None
        for lent in list(self._lent.values()):
            at_ms = lent.next_ms()
            if at_ms is not None and at_ms <= now_ms:
                self._act_due(lent, now_ms)
                at_ms = lent.next_ms() if lent.grant in self._lent else None
            self._due_by(at_ms)

    def _act_due(self, lent: DeliveredStream, now_ms: int) -> None:
        if lent.ending:
            self._finish(lent, lent.sent)
            return
        expired = lent.expire(now_ms)
        if expired:
            self._credit_back(lent, expired)
            self._note_moved(lent, lent.progress, now_ms, moved=True)
        lent.resting.wake(now_ms)
        self._offer(lent)

    def _due_by(self, at_ms: int | None) -> None:
        if at_ms is not None and (self._due_at_ms is None or at_ms < self._due_at_ms):
            self._due_at_ms = at_ms

    def _note_moved(
        self, lent: DeliveredStream, before: Progress, now_ms: int, *, moved: bool = False
    ) -> None:
        if lent.progress is before and not moved:
            return
        self._moved.add(lent.grant)
        if self._report_at_ms is None:
            self._report_at_ms = now_ms + REPORT_INTERVAL_MS

    def _report(self) -> None:
        self._report_at_ms = None
        reports = tuple((grant, self._lent[grant].report()) for grant in sorted(self._moved))
        self._moved.clear()
        if reports:
            self._effects.append(Report(reports))

    # Sending

    def _send(self, now_ms: int) -> None:
        holding = self._turns.holding
        stuck = 0
        while stuck < len(holding):
            if self.out_records >= self.credit_records or self.out_bytes >= self.credit_bytes:
                return
            lent = holding[0]
            before = lent.progress
            sent = self._send_from(lent, now_ms)
            if lent.progress is not before:
                self._note_moved(lent, before, now_ms)
            if lent.chunk is None:
                self._turns.sent(lent)
                self._offer(lent)
                stuck = 0
            else:
                holding.rotate(-1)
                stuck = 0 if sent else stuck + 1

    def _send_from(self, lent: DeliveredStream, now_ms: int) -> bool:
        chunk = lent.chunk
        assert chunk is not None
        if not lent.resending and lent.capped():
            lent.forget_chunk()
            return False
        room = self._room(self._turns.share(lent.subscription))
        if room.records <= 0 or room.bytes <= 0:
            return False
        records, size = lent.out.records, lent.out.bytes
        delivery = self._next_delivery(lent, chunk, room)
        if delivery is None:
            return False
        self._charge(lent, lent.out.records - records, lent.out.bytes - size)
        self._effects.append(delivery)
        return True

    def _next_delivery(
        self, lent: DeliveredStream, chunk: ChunkRead, room: CreditLeft
    ) -> Deliver | None:
        fresh = lent.fresh
        if lent.spans is None:
            whole = chunk.records <= room.records and len(chunk.frames) <= room.bytes
            if fresh and whole:
                return lent.send_whole()
            lent.spans = self._cut_frames(chunk.frames)
        if fresh:
            delivery = lent.send_frames(lent.spans, room)
            if delivery is not None:
                return delivery
        delivery = lent.send_part(lent.spans, room)
        self._due_by(lent.next_ms())
        return delivery

    def _room(self, share: Share) -> CreditLeft:
        records = self.credit_records - self.out_records
        size = self.credit_bytes - self.out_bytes
        if self._turns.contended and share.records > 0:
            records = min(records, self.credit_records // 2 - share.records)
            size = min(size, self.credit_bytes // 2 - share.bytes)
        return CreditLeft(records, size)

    def _charge(self, lent: DeliveredStream, records: int, size: int) -> None:
        share = self._turns.share(lent.subscription)
        share.records += records
        share.bytes += size
        self.out_records += records
        self.out_bytes += size

    def _credit_back(self, lent: DeliveredStream, runs: list[SentRange]) -> None:
        for run in runs:
            self._charge(lent, -run.records, -run.bytes)

    # Reading

    def _read(self) -> None:
        while (turn := self._turns.next_reader()) is not None:
            lent, offset = turn
            self._effects.append(Read(lent.grant, lent.stream, offset, DELIVERY_READ_BYTES_MAX))

    def _offer(self, lent: DeliveredStream) -> None:
        self._show_stalled(lent)
        self._turns.offer(lent)

    def _forget(self, lent: DeliveredStream) -> None:
        self._credit_back(lent, lent.out.take_all())
        self._turns.forget(lent)
        if self._durable.end(lent.grant):
            self._effects.append(RefuseGrant(lent.grant))
        self._moved.discard(lent.grant)
        del self._lent[lent.grant]

    def _show_stalled(self, lent: DeliveredStream) -> None:
        if lent.ending:
            return
        ranges = len(lent.progress.ranges)
        stalled = ranges >= ACKED_RANGES_MAX // 2 and lent.capped()
        if stalled != lent.stalled:
            lent.stalled = stalled
            self._note_moved(lent, lent.progress, self._now_ms, moved=True)
            self._effects.append(
                ShowStalled(lent.grant, lent.subscription, stalled, lent.progress.floor)
            )


_HANDLERS: dict[type, Callable[..., None]] = {
    Installed: DeliveryWindow._installed,
    Grown: DeliveryWindow._grown,
    ChunkRead: DeliveryWindow._chunk_read,
    Settle: DeliveryWindow._settle,
    Settles: DeliveryWindow._settles,
    RevokeBegun: DeliveryWindow._revoke_begun,
    RevokeFinished: DeliveryWindow._revoke_finished,
    Dropped: DeliveryWindow._dropped,
    Draining: DeliveryWindow._drain,
    Left: DeliveryWindow._left,
    Closing: DeliveryWindow._closing,
    Saved: DeliveryWindow._saved,
    Suspended: DeliveryWindow._suspended,
    Resumed: DeliveryWindow._resumed,
    Ticked: DeliveryWindow._ticked,
}
