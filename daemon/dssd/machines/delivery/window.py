"""The delivery window of a session: which records go to the client, and what it may still take.

A session has one credit, in records and bytes, for all its streams. *Sent* records use credit up;
an ack or nak gives it back, so a slow consumer costs at most the credit. Streams that have
something to send take turns, one delivery each; `Credit` keeps a part of the credit for each
subscription, and one for redeliveries.

Invariants: the new records of a subscription that are out exceed what `Credit` allows by less than
one frame, and so do redeliveries; all that is out exceeds `OUT_BYTES_MAX` by less than a frame. A
record is out at most once at a time, and stays out until the client settles it, drops it or has had
it for longer than the ack wait. An ack floor never falls. A stream that waits for anything of its
own (its cap, its suspects, a revoke) holds neither credit nor a place among the reads. Reports are
the last effects of a step: a borrower may answer one at once with an input that lets more be sent,
which must not overtake what this step sends. This module does not know the frame format: it is
given the function that cuts frames.
"""

from collections.abc import Callable, Iterable, Sequence

from dss_core.limits import CREDIT_BYTES, CREDIT_RECORDS
from dss_core.progress import Progress, Ranges
from dssd.limits import LAST_MOVE_MS, REVOKE_REPORT_SHARE
from dssd.machines.delivery.credit import Credit
from dssd.machines.delivery.dispatch import Dispatch
from dssd.machines.delivery.events import (
    AnswerSettled,
    ChunkRead,
    Closing,
    DeliveryEffect,
    DeliveryInput,
    Draining,
    Dropped,
    Edited,
    EntriesRead,
    Grown,
    Installed,
    LaneOpened,
    Left,
    Moved,
    Paused,
    ReadFailed,
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
    StreamSealed,
    Suspended,
    TakenBack,
    TellGone,
    Ticked,
    Unpaused,
    Unwanted,
)
from dssd.machines.delivery.fairness import RoundRobin, Share
from dssd.machines.delivery.frame_plan import CutFrames
from dssd.machines.delivery.lane import Lane
from dssd.machines.delivery.lanes import Lanes
from dssd.machines.delivery.outstanding import GivenBack, SentRange, checked
from dssd.machines.delivery.pending_reports import PendingReports
from dssd.machines.delivery.retry import Resting
from dssd.machines.delivery.standing import Standing, standing_of
from dssd.machines.delivery.stream import DeliveredStream
from dssd.machines.delivery.sync_acks import DurableAcks
from dssd.machines.delivery.vanishing import left_in_doubt
from dssd.machines.messages import Stall


class DeliveryWindow:
    """The machine: `step` takes an input and returns what to do, in order."""

    def __init__(
        self,
        cut_frames: CutFrames,
        *,
        credit_records: int = CREDIT_RECORDS,
        credit_bytes: int = CREDIT_BYTES,
    ) -> None:
        self.credit = Credit(credit_records, credit_bytes)
        self.wake_at_ms: int | None = None
        """When to feed `Ticked`; read it anew after each step."""
        self._streams: dict[int, DeliveredStream] = {}
        self._lanes = Lanes()
        self._turns = RoundRobin()
        self._dispatch = Dispatch(
            cut_frames, self.credit, self._turns, went=self._went, offer=self._offer
        )
        self._durable = DurableAcks()
        self._reports = PendingReports()
        self._due_at_ms: int | None = None
        """Nothing of a stream is due before this."""
        self._draining = False
        self._spares = False
        """The daemon stops, or an operator ends the session: records left out are not charged."""
        self._now_ms = 0
        """Of the step under way."""
        self._effects: list[DeliveryEffect] = []
        self._last_effects: list[Report | Unwanted] = []

    def step(self, given: DeliveryInput, now_ms: int) -> list[DeliveryEffect]:
        """Take one input; returns what to do, in order."""
        effects: list[DeliveryEffect] = []
        self._effects, self._last_effects = effects, []
        self._now_ms = now_ms
        _HANDLERS[type(given)](self, given, now_ms)
        effects += self._lanes.moves(now_ms, self._offer)
        self._dispatch.send(effects)
        effects += self._lanes.moves(now_ms, self._offer)
        self._due_by(self._lanes.put_off_ms())
        self._dispatch.read(effects)
        due, report = self._due_at_ms, self._reports.report_at_ms
        self.wake_at_ms = report if due is None or (report is not None and report < due) else due
        return effects + self._last_effects

    def streams(self) -> Iterable[DeliveredStream]:
        """The streams that it delivers; a caller must not change them."""
        return self._streams.values()

    def not_done(self, grant: int, ranges: Ranges) -> Ranges:
        """The parts of these disjoint ranges that are not done in the group of a grant."""
        stream = self._streams.get(grant)
        return () if stream is None else stream.records.not_done(ranges)

    def standing(self, grant: int, offset: int) -> Standing | None:
        """The state of an offset of a grant's stream; None if the grant is not held here."""
        stream = self._streams.get(grant)
        if stream is None:
            return None
        share = self._share(stream)
        again = bool(stream.records.resting.due_in(offset, offset + 1))
        return standing_of(stream, offset, share, self.credit.left(share.account, again=again))

    def taken(self) -> dict[int, int]:
        """How many records each subscription has out."""
        return self._turns.out()

    @property
    def held_bytes(self) -> int:
        """How many bytes were read and wait to be sent: a few chunks at most."""
        return sum(len(stream.chunk.frames) for stream in self._turns.holding if stream.chunk)

    @property
    def drained(self) -> bool:
        """After `Draining`: whether the client has settled all that it will."""
        return all(stream.finished for stream in self._streams.values())

    # Inputs about grants

    def _installed(self, given: Installed, now_ms: int) -> None:
        assert given.grant not in self._streams, given
        share = self._turns.share(given.subscription)
        own = share.account.resting
        stream = DeliveredStream(given, self.credit.records, Resting(own), now_ms)
        if given.policy is not None:
            lane = self._lanes.install(given, stream, Resting(own), share.suspects, now_ms)
            self._effects.append(lane.opening())
        for part in stream.parts():
            self._streams[part.grant] = part
            if self._turns.enter(part):
                self.credit.open(share.account)
            self._durable.begin(part.grant, part.records.progress)
            self._due_by(part.next_ms())
            self._offer(part)

    def _lane_read(self, given: EntriesRead | LaneOpened, now_ms: int) -> None:
        self._go_on_with(self._lanes.take_read(given, now_ms), now_ms, moved=True)

    def _moved(self, given: Moved, now_ms: int) -> None:
        lane = self._lanes.take_moved(given, now_ms)
        # A move that appended nothing is over too, if nothing is left to try: all was acknowledged.
        is_over = lane is not None and not lane.is_moving
        self._go_on_with(lane, now_ms, moved=is_over or bool(given.entries or given.lost))
        if lane is not None and lane.ends_once_moved and not lane.given_back():
            self._finish(lane.main, None)

    def _go_on_with(self, lane: Lane | None, now_ms: int, *, moved: bool) -> None:
        """A lane has taken an answer; ``moved``: its progress or queues may have changed."""
        if lane is None or lane.main.finished:
            return
        self._due_by(self._lanes.next_ms())
        for part in lane.parts:
            self._tell_gone(part)
            self._due_by(part.next_ms())
            self._note_moved(part, part.records.progress, now_ms, moved=moved)
            self._offer(part)

    def _grown(self, given: Grown, now_ms: int) -> None:
        stream = self._streams.get(given.grant)
        if stream is not None:
            stream.grow()
            self._offer(stream)

    def _chunk_read(self, given: ChunkRead, now_ms: int) -> None:
        stream = self._streams.get(given.grant)
        self._turns.read_answered(stream)
        if stream is None:
            return
        chunk = stream.as_far_as_it_goes(given)
        if chunk is None:
            self._pause(stream, Stall.DAMAGED, now_ms)
            return
        before = stream.records.progress
        if stream.take_chunk(chunk) and not self._share(stream).silent:
            self._turns.hold(stream)
        else:
            stream.forget_chunk()
            self._offer(stream)
        if stream.gone and (lane := self._lanes.of(stream)) is not None:
            lane.lost(stream.level, stream.gone)
        self._tell_gone(stream)
        if not stream.finished:
            self._due_by(stream.next_ms())
            self._note_moved(stream, before, now_ms)

    def _tell_gone(self, stream: DeliveredStream) -> None:
        if stream.gone:
            self._effects.append(TellGone(stream.grant, stream.gone))
            stream.gone = ()

    def _read_failed(self, given: ReadFailed, now_ms: int) -> None:
        stream = self._streams.get(given.grant)
        self._turns.read_answered(stream)
        if stream is not None:
            self._pause(stream, Stall.UNREADABLE, now_ms)

    def _pause(self, stream: DeliveredStream, trouble: Stall, now_ms: int) -> None:
        stream.read_failed(now_ms, trouble)
        self._due_by(stream.next_ms())
        self._show_stalled(stream)

    def _revoke_begun(self, given: RevokeBegun, now_ms: int) -> None:
        stream = self._streams.get(given.grant)
        if stream is None or stream.records.ending:
            return
        self._end(stream, now_ms + int(given.deadline_ms * REVOKE_REPORT_SHARE))
        self._effects.append(SendRevoke(given.grant, given.deadline_ms))

    def _revoke_finished(self, given: RevokeFinished, now_ms: int) -> None:
        stream = self._streams.get(given.grant)
        if stream is None or stream.finished:
            self._effects.append(RefuseGrant(given.grant))
            return
        asked = stream.records.ending
        lane = self._lanes.of(stream)
        if lane is not None and lane.given_back():
            # What the client refused goes to its queue first, with its error.
            lane.ends_once_moved = True
            self._end(stream, now_ms + LAST_MOVE_MS)
        else:
            # The client has dropped what it did not hand out, so no upper bound is needed.
            self._finish(stream, None)
        if not asked:
            self._last_effects.append(Unwanted(stream.subscription))

    def _end(self, stream: DeliveredStream, until_ms: int) -> None:
        """Send nothing more; what is out may be settled until the time."""
        for part in stream.parts():
            self._turns.withdraw(part)
            if not part.records.ending:
                part.end(until_ms)
        self._due_by(until_ms)

    def _finish(self, stream: DeliveredStream, sent: int | None) -> None:
        for part in stream.parts():
            self._turns.withdraw(part)
            part.end(None)
            self._dispatch.credit_back(part, self._left_at_end(part, answered=sent is None))
        self._reports.discard(stream.grant)
        stream.records.sent = stream.records.handed_out() if sent is None else sent
        if self._draining:
            # The stream is not given back: it is reported when the connection closes.
            return
        self._last_effects.append(Report(((stream.grant, stream.report(sent=sent)),), final=True))

    def _left_at_end(self, stream: DeliveredStream, *, answered: bool) -> list[SentRange]:
        """What was out. A client that leaves a drain unanswered counts as vanished."""
        if answered or self._spares or self._is_paused(stream):
            return stream.records.out.take_all()
        if self._draining:
            return stream.records.end_vanished(self._now_ms, alone=False)
        return stream.records.end_unanswered()

    def _dropped(self, given: Dropped, now_ms: int) -> None:
        stream = self._streams.get(given.grant)
        if stream is not None:
            self._forget(stream)

    def _left(self, given: Left, now_ms: int) -> None:
        self._turns.share(given.subscription).left = True
        self._turns.forget_left(given.subscription)

    def _drain(self, given: Draining, now_ms: int) -> None:
        self._draining = True
        self._spares = not given.charges
        for grant in sorted(stream.grant for stream in self._lent()):
            self._revoke_begun(RevokeBegun(grant, given.deadline_ms), now_ms)

    def _lent(self) -> list[DeliveredStream]:
        """The stream itself of each grant."""
        return [stream for stream in self._streams.values() if not stream.level]

    def _closing(self, given: Closing, now_ms: int) -> None:
        """Charge what is out, except in a paused group, or where the client was ended."""
        streams = () if self._spares else tuple(self._streams.values())
        for stream, left in left_in_doubt(streams, self._is_paused, now_ms):
            self._dispatch.credit_back(stream, left)
        lent = self._lent()
        reports = tuple((each.grant, each.report(sent=each.records.sent)) for each in lent)
        if reports:
            self._last_effects.append(Report(reports))
        for stream in lent:
            self._forget(stream)

    def _silenced(self, given: Suspended | Resumed | Paused | Unpaused, now_ms: int) -> None:
        share = self._turns.share(given.subscription)
        if isinstance(given, Suspended | Resumed):
            share.suspended = isinstance(given, Suspended)
        else:
            share.paused = isinstance(given, Paused)
        for grant in sorted(share.grants):
            if isinstance(given, Suspended | Paused):
                self._turns.withdraw(self._streams[grant])
            else:
                self._offer(self._streams[grant])

    def _edited(self, given: Edited, now_ms: int) -> None:
        for grant in self._turns.share(given.subscription).grants:
            stream = self._streams[grant]
            stream.edit(given, now_ms)
            lane = self._lanes.of(stream)
            if lane is not None and given.policy is not None:
                lane.policy = given.policy
            self._due_by(stream.next_ms())

    def _share(self, stream: DeliveredStream) -> Share:
        return self._turns.share(stream.subscription)

    def _is_paused(self, stream: DeliveredStream) -> bool:
        return self._share(stream).paused

    # Inputs about records

    def _settles(self, given: Settles, now_ms: int) -> None:
        for each in given.settles:
            self._settle(each, now_ms)

    def _settle(self, given: Settle, now_ms: int) -> None:
        stream = self._streams.get(given.grant)
        if stream is None or stream.finished:
            # Without acks this may be the last piece of a settle whose other pieces were applied.
            self._effects.append(RefuseGrant(given.grant, given.token if given.acked else 0))
            return
        records = stream.records
        before = records.progress
        acked = self._checked(stream, given.acked) if given.acked else ()
        if acked and (lane := self._lanes.of(stream)) is not None:
            acked = self._counted(lane, stream, acked, given.token, now_ms)
        if acked:
            self._dispatch.credit_back(stream, records.ack(acked))
        frontier = records.frontier
        if given.frontier > frontier:
            records.raise_frontier(given.frontier, now_ms)
        for start, end in self._checked(stream, given.in_progress) if given.in_progress else ():
            records.renew(start, end, now_ms)
        for start, end in self._checked(stream, given.handed_out) if given.handed_out else ():
            records.hand_out(start, end, now_ms)
        if given.naks:
            self._refuse(stream, given, now_ms)
        if given.token:
            # The token waits for earlier acks too: they may not be durable yet.
            self._answer(self._durable.wait(given.grant, given.token, records.consumed.done()))
        moved = bool(given.naks or given.handed_out) or records.frontier != frontier
        self._note_moved(stream, before, now_ms, moved=moved)
        if given.token and self._awaits(stream):
            self._reports.hurry(stream.lent, now_ms)
        self._due_by(stream.next_ms())
        self._offer(stream)

    def _counted(
        self, lane: Lane, stream: DeliveredStream, acked: Ranges, token: int, now_ms: int
    ) -> Ranges:
        """The acks that count at this level; late acks count in the retry queue instead."""
        retry = lane.retry
        before = retry.records.progress
        counted = self._lanes.acks_of(stream, acked, now_ms)
        if retry.records.progress is not before:
            self._note_moved(retry, before, now_ms)
            if token:
                self._answer(self._durable.wait(retry.grant, token, retry.records.consumed.done()))
        return counted

    def _refuse(self, stream: DeliveredStream, given: Settle, now_ms: int) -> None:
        good = [nak for nak in given.naks if self._checked(stream, ((nak.start, nak.end),))]
        freed = self._lanes.refuse(stream, good, self._effects, now_ms)
        self._dispatch.credit_back(stream, freed)

    def _taken_back(self, given: TakenBack, now_ms: int) -> None:
        taken = self._lanes.taken_back(given, self._effects, now_ms)
        if taken is not None:
            self._note_failed(*taken, now_ms)
            self._offer(taken[0])

    def _note_failed(self, stream: DeliveredStream, back: Sequence[GivenBack], now_ms: int) -> None:
        self._dispatch.credit_back(stream, back)
        self._note_moved(stream, stream.records.progress, now_ms, moved=True)

    def _checked(self, stream: DeliveredStream, ranges: Ranges) -> Ranges:
        good, bad = checked(ranges, stream.records.first, stream.records.sent)
        if bad is not None:
            self._effects.append(RefuseRange(stream.grant, *bad))
        return good

    def _saved(self, given: Saved, now_ms: int) -> None:
        self._answer(self._durable.saved(given.grant, given.progress))

    def _answer(self, tokens: list[int]) -> None:
        self._effects.extend(AnswerSettled(token) for token in tokens)

    # Time

    def _ticked(self, given: Ticked, now_ms: int) -> None:
        if self._reports.report_at_ms is not None and now_ms >= self._reports.report_at_ms:
            self._report()
        if self._due_at_ms is None or now_ms < self._due_at_ms:
            return
        self._due_at_ms = None
        self._lanes.wake(now_ms)
        self._due_by(self._lanes.next_ms())
        for stream in list(self._streams.values()):
            at_ms = stream.next_ms()
            if at_ms is not None and at_ms <= now_ms:
                self._act_due(stream, now_ms)
                at_ms = stream.next_ms() if stream.grant in self._streams else None
            self._due_by(at_ms)

    def _act_due(self, stream: DeliveredStream, now_ms: int) -> None:
        if stream.records.ending:
            if not stream.level:
                self._finish(stream, stream.records.sent)
            return
        # In a pause nobody is to blame: the user may wait for the cause of the pause to end.
        is_paused = self._is_paused(stream)
        expired = self._lanes.expire(stream, self._effects, now_ms, blamed=not is_paused)
        if expired:
            self._note_failed(stream, expired, now_ms)
        stream.wake(now_ms)
        self._offer(stream)

    def _due_by(self, at_ms: int | None) -> None:
        if at_ms is not None and (self._due_at_ms is None or at_ms < self._due_at_ms):
            self._due_at_ms = at_ms

    def _note_moved(
        self, stream: DeliveredStream, before: Progress, now_ms: int, *, moved: bool = False
    ) -> None:
        if moved or stream.records.progress is not before:
            self._reports.note(stream.lent, now_ms)

    def _went(self, stream: DeliveredStream, before: Progress) -> None:
        """It had its turn to send."""
        self._note_moved(stream, before, self._now_ms)
        self._due_by(stream.next_ms())
        self._due_by(self._lanes.go_on(stream))

    def _report(self) -> None:
        lent = [self._streams[grant] for grant in self._reports.take()]
        reports = tuple((each.grant, each.report(is_awaited=self._awaits(each))) for each in lent)
        if reports:
            self._last_effects.append(Report(reports))

    def _awaits(self, stream: DeliveredStream) -> bool:
        return any(self._durable.awaits(part.grant) for part in stream.parts())

    # Turns

    def _offer(self, stream: DeliveredStream) -> None:
        if stream.lane is not None:
            self._due_by(self._lanes.go_on(stream))
        for grant in self._share(stream).suspects_go_on():
            self._due_by(self._streams[grant].next_ms())
        self._show_stalled(stream)
        self._turns.offer(stream)

    def _forget(self, stream: DeliveredStream) -> None:
        share = self._share(stream)
        for part in stream.parts():
            part.records.waiting.leave()
            self._dispatch.credit_back(part, part.records.out.take_all())
            part.records.resting.clear()
            if self._turns.forget(part):
                self.credit.close(share.account)
            if self._durable.end(part.grant):
                self._effects.append(RefuseGrant(stream.grant))
            del self._streams[part.grant]
        self._lanes.forget(stream.grant)
        self._reports.discard(stream.grant)
        for grant in share.suspects_go_on():
            self._due_by(self._streams[grant].next_ms())

    def _show_stalled(self, stream: DeliveredStream) -> None:
        if stream.records.ending:
            return
        stall = stream.stalled_by()
        if stall is not stream.stall:
            stream.stall = stall
            self._note_moved(stream, stream.records.progress, self._now_ms, moved=True)
            oldest = stream.records.progress.floor
            self._effects.append(ShowStalled(stream.lent, stream.subscription, stall, oldest))


_HANDLERS: dict[type, Callable[..., None]] = {
    Installed: DeliveryWindow._installed,
    Grown: DeliveryWindow._grown,
    ChunkRead: DeliveryWindow._chunk_read,
    ReadFailed: DeliveryWindow._read_failed,
    Settle: DeliveryWindow._settle,
    Settles: DeliveryWindow._settles,
    RevokeBegun: DeliveryWindow._revoke_begun,
    RevokeFinished: DeliveryWindow._revoke_finished,
    Dropped: DeliveryWindow._dropped,
    Draining: DeliveryWindow._drain,
    Left: DeliveryWindow._left,
    Closing: DeliveryWindow._closing,
    Saved: DeliveryWindow._saved,
    **dict.fromkeys((Suspended, Resumed, Paused, Unpaused), DeliveryWindow._silenced),
    Edited: DeliveryWindow._edited,
    StreamSealed: lambda window, given, _: window._lanes.sealed(given),
    Ticked: DeliveryWindow._ticked,
    EntriesRead: DeliveryWindow._lane_read,
    LaneOpened: DeliveryWindow._lane_read,
    Moved: DeliveryWindow._moved,
    TakenBack: DeliveryWindow._taken_back,
}
