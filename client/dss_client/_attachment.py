"""One Attach call, from its opening to its loss: grants, acks in flight, pings.

Three tasks share it: one reads, one writes, one pings. Invariant: the last report of a grant goes
out before the end of its revoke. Once the call is lost, every grant is over and everyone who waited
for an ack has an answer.
"""

import asyncio
from collections import deque
from collections.abc import Coroutine
from functools import partial
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, Any, NoReturn

import grpc.aio

from dss_api.v1 import sessions_pb2 as wire
from dss_client._connection import Connection, ConnectionLostError, error_from_wire
from dss_client._doubt import Doubt
from dss_client._grant import HeldGrant
from dss_client._grant_report import GrantReport
from dss_client._held_shards import held_shard
from dss_client._listeners import Listener
from dss_client._pings import Pings
from dss_client._reports_on_wire import sent_together, settle_of
from dss_client._waiters import fail, resolve
from dss_client.limits import (
    ACKED_RANGES_KEPT,
    CREDIT_PARTS,
    ENDED_GRANTS_MAX,
    REVOKE_WAIT_OF_DEADLINE,
)
from dss_core.errors import AckOutOfRange, DssError, GrantNotHeld, OutcomeUnknown
from dss_core.lane import MAIN
from dss_core.limits import SETTLE_INTERVAL_MS, SETTLE_RANGES_MAX
from dss_core.progress import Ranges, normalised

if TYPE_CHECKING:
    AttachCall = grpc.aio.StreamStreamCall[wire.SessionUp, wire.SessionDown]


class Attachment:
    """The live call of a session."""

    def __init__(
        self,
        connection: Connection,
        call: "AttachCall",
        opened: wire.Opened,
        listener: Listener,
        asked_at: float,
    ) -> None:
        """When the opening of the call was sent, by the monotonic clock."""
        self.opened = opened
        self._connection = connection
        self._call = call
        self._listener = listener
        lease_s = opened.lease_ms / 1_000
        self._grants: dict[int, HeldGrant] = {}
        self._dirty: dict[HeldGrant, None] = {}  # in order; of a lane, each level
        self._revoking: dict[int, HeldGrant] = {}
        self._ended: dict[int, HeldGrant] = {}
        """Grants that are over, the oldest first: acks that the daemon still refuses are
        counted."""
        self._reports: deque[GrantReport] = deque()  # bounded by the credit
        self._outbox: deque[wire.SessionUp] = deque()  # bounded by grants and subscriptions
        self._answers: deque[wire.SessionUp] = deque()  # bounded by the credit
        """Messages that must be sent before any later report."""
        self._kept: deque[HeldGrant] = deque()
        """The grants that remember acks, in the order of these acks; the oldest first."""
        self._taken_bytes = 0
        """Records that came since the last report."""
        self._wake = asyncio.Event()
        self._flush_timer: asyncio.TimerHandle | None = None
        self._tokens = count(1)
        self._settling: dict[int, tuple[HeldGrant, list[asyncio.Future[None]]]] = {}
        """By token: the waiters for acks that a grant reported and that are not durable yet."""
        self._doubt = Doubt(lease_s, asked_at)
        self._pings = Pings(self._doubt, lease_s, self._tokens, self.send)
        self._closing = False
        self._lost = False

    async def run(self) -> DssError:
        """Serve the call until it is lost; returns why."""
        reasons: list[DssError] = []
        self._doubt.begin()
        try:
            async with asyncio.TaskGroup() as tasks:
                for work, name in (
                    (self._read(), "reader"),
                    (self._write(), "writer"),
                    (self._pings.go_on(), "pinger"),
                ):
                    tasks.create_task(self._until_lost(work), name=f"dss session {name}")
        except* ConnectionLostError as lost:
            reasons.extend(e.reason for e in lost.exceptions if isinstance(e, ConnectionLostError))
        finally:
            self._doubt.end()
            self._end(reasons[0] if reasons else OutcomeUnknown())
        return reasons[0]

    async def _until_lost(self, work: Coroutine[Any, Any, None]) -> None:
        """Once one task knows that the call is lost, hand out nothing: the others end later.

        The daemon may have known for a while, and lent the streams to others.
        """
        try:
            await work
        except ConnectionLostError as lost:
            self._end(lost.reason)
            raise

    def send(self, item: wire.SessionUp) -> None:
        """Queue an item; the reports of grants go out before it."""
        self._outbox.append(item)
        self._wake.set()

    def flush(self) -> None:
        """Send the reports of grants now."""
        if self._dirty:
            self._wake.set()

    def flush_if_worth_it(self) -> None:
        """Send reports now if the records taken since the last report are half of the credit.

        If they are fewer, more records are in flight, or there are none. Reporting at once would
        trade a few acks for a few records, again and again.
        """
        records = sum(grant.held_records for grant in self._dirty)
        if (
            records * CREDIT_PARTS >= self.opened.credit_records
            or self._taken_bytes * CREDIT_PARTS >= self.opened.credit_bytes
        ):
            self._wake.set()

    def close(self) -> None:
        """Send the last reports, then end the call from this side; `run` returns."""
        self._closing = True
        self._wake.set()

    def is_sure(self) -> bool:
        """Whether records may be handed out without asking the daemon."""
        return not self._doubt.is_there()

    def ask(self) -> None:
        """Ask the daemon for a sign of life, unless it was asked already."""
        self._pings.ask_again()

    async def sure(self) -> None:
        """Return at once if the grants are surely held, else when a ping is answered or the call
        lost."""
        while not (self._lost or self.is_sure()):
            await asyncio.shield(self._pings.ask())
            self._doubt.ended()

    async def settled(self, subscription: int) -> None:
        """Wait until the acks of a subscription so far are durable, or cannot become so."""
        waits = [
            level.settled()
            for grant in self._grants.values()
            if grant.subscription == subscription and not grant.over
            for level in grant.levels()
        ]
        await asyncio.gather(*waits, return_exceptions=True)

    def forget(self, subscription: int) -> None:
        """The subscription is over: end its grants."""
        for grant in [g for g in self._grants.values() if g.subscription == subscription]:
            self._finish(grant, GrantNotHeld(grant=grant.stream))
        for grant in [each for each, _ in self._settling.values()]:
            if grant.subscription == subscription:
                self._ask_after_acks(grant.number)

    def report(self, subscription: int) -> None:
        """Send the pending reports of a subscription before anything else."""
        for grant in [g for g in self._dirty if g.subscription == subscription]:
            self._collect(grant)

    def heard_s(self) -> float:
        """When something of the daemon was read last, by the monotonic clock."""
        return monotonic() - self._doubt.unheard_s()

    def park(self, subscription: int) -> None:
        """Give back every stream of a subscription; it gets no more until it asks again."""
        for grant in [g for g in self._grants.values() if g.subscription == subscription]:
            self._give_back(grant)

    # Reading.

    async def _read(self) -> NoReturn:
        while True:
            item = await self._connection.read(self._call)
            self._doubt.heard()
            self._take(item)

    def _take(self, item: wire.SessionDown) -> None:
        match item.WhichOneof("item"):
            case "deliver":
                self._on_deliver(item.deliver)
            case "bundle":
                for deliver in item.bundle.deliveries:
                    self._on_deliver(deliver)
            case "granted":
                self._on_granted(item.granted)
            case "revoke":
                self._on_revoke(item.revoke)
            case "revoked":
                self._on_revoked(item.revoked)
            case "settled":
                self._on_settled(item.settled.token)
            case "pong":
                self._pings.answered(item.pong.token)
            case other:
                self._take_rare(item, other)

    def _take_rare(self, item: wire.SessionDown, kind: str | None) -> None:
        match kind:
            case "subscribed":
                self._listener.subscribed(item.subscribed)
            case "unsubscribed":
                self._listener.unsubscribed(item.unsubscribed.subscription)
            case "gone":
                self._on_gone(item.gone)
            case "take_back":
                self._on_take_back(item.take_back)
            case "status":
                subscription = self._listener.subscription(item.status.subscription)
                if subscription is not None:
                    subscription.stands(item.status.state)
            case "pause_set":
                self._on_pause_set(item.pause_set)
            case "error":
                self._on_error(item.error)
            case _:
                # An item that a newer daemon sends; what we asked for never depends on it.
                return

    def _on_granted(self, item: wire.Granted) -> None:
        subscription = self._listener.subscription(item.subscription)
        if subscription is None:
            self.send(wire.SessionUp(revoke_finished=wire.RevokeFinished(grant=item.grant)))
            return
        grant = HeldGrant(
            item.grant,
            subscription=item.subscription,
            stream=item.stream,
            grant_epoch=item.grant_epoch,
            floor=item.progress.floor,
            redelivered_below=subscription.handed_below(item.storage_topic_id, item.stream),
            touched=self._touched,
            storage_topic_id=item.storage_topic_id,
            queues=item.queues,
            shard=held_shard(item),
        )
        grant.order = subscription.ordered() if item.ordered else None
        self._grants[item.grant] = grant
        subscription.granted(grant)

    def _on_deliver(self, item: wire.Deliver) -> None:
        grant = self._grants.get(item.grant)
        if grant is None or grant.stopped:
            return
        subscription = self._listener.subscription(grant.subscription)
        if subscription is None:
            return
        mask: Ranges = tuple((each.start, each.end) for each in item.mask)
        frames = item.frames
        self._taken_bytes += len(frames)
        redelivered, attempt, kind = item.redelivered, item.attempt, subscription.handouts.main
        if item.level != MAIN:
            grant, kind = grant.of_level(item.level), subscription.handouts.retried
        subscription.deliver(kind(grant, frames, mask, redelivered=redelivered, attempt=attempt))

    def _on_settled(self, token: int) -> None:
        settling = self._settling.pop(token, None)
        if settling is not None:
            resolve(settling[1])

    def _on_revoke(self, item: wire.Revoke) -> None:
        grant = self._grants.get(item.grant)
        if grant is None:
            self.send(wire.SessionUp(revoke_finished=wire.RevokeFinished(grant=item.grant)))
            return
        stopped = self._stop(grant)
        self._revoking[item.grant] = grant
        wait_s = item.deadline_ms / 1_000 * REVOKE_WAIT_OF_DEADLINE
        asyncio.get_running_loop().call_later(wait_s, self._finish_revoke, grant)
        self._touched(grant, True)
        if stopped:
            self._tell_revoked(grant)

    def _on_revoked(self, item: wire.Revoked) -> None:
        grant = self._grants.get(item.grant)
        if grant is not None:
            self._finish(grant, GrantNotHeld(grant=grant.stream))
        else:
            self._ask_after_acks(item.grant)

    def _on_gone(self, item: wire.Gone) -> None:
        if (grant := self._grants.get(item.grant)) is not None:
            ranges = normalised((each.start, each.end) for each in item.ranges)
            grant.of_level(item.level).gone(ranges)

    def _on_take_back(self, item: wire.TakeBack) -> None:
        grant = self._grants.get(item.grant)
        subscription = grant and self._listener.subscription(grant.subscription)
        if not (grant and subscription and item.ranges):
            return  # the grant is over: all of it comes again
        ranges = normalised((each.start, each.end) for each in item.ranges)
        level = grant.of_level(item.level)
        if not item.number:
            subscription.taken_back(level, ranges)
            return
        # What was settled before is reported before.
        subscription.bring_acks()
        self._collect(level)
        out = subscription.asked_back(level, ranges)
        answer = wire.TakenBack(grant=item.grant, number=item.number, out=out)
        self._answers.append(wire.SessionUp(taken_back=answer))
        self._wake.set()

    def _on_pause_set(self, item: wire.PauseSet) -> None:
        subscription = self._listener.subscription(item.subscription)
        if subscription is not None:
            subscription.set_paused(item.paused)
        # The reports of what was handed out before go out before it.
        taken = wire.PauseTaken(subscription=item.subscription, turn=item.turn)
        self.send(wire.SessionUp(pause_taken=taken))

    def _on_error(self, item: wire.SessionError) -> None:
        error = error_from_wire(item.error)
        if item.grant:
            self._on_grant_error(item.grant, error)
        else:
            self._listener.refused(error, subscription=item.subscription, final=item.final)

    def _on_grant_error(self, number: int, error: DssError) -> None:
        """A report was refused: its grant ended meanwhile, or its offsets were not sent."""
        grant = self._grants.get(number) or self._ended.get(number)
        subscription = grant and self._listener.subscription(grant.subscription)
        if subscription and isinstance(error, AckOutOfRange):
            subscription.refused(_offsets_of(error))
        elif subscription and isinstance(error, GrantNotHeld):
            subscription.refused(1)
        if isinstance(error, GrantNotHeld):
            self._refuse_ack(error)
            if number in self._grants:
                self._finish(self._grants[number], error)

    # Grants that end.

    def _stop(self, grant: HeldGrant) -> bool:
        """Hand out nothing more of the grant; returns whether this is the first time."""
        if grant.stopped:
            return False
        subscription = self._listener.subscription(grant.subscription)
        for level in grant.levels():
            if subscription is not None:
                subscription.stop(level)
            level.stopped = True
        return True

    def _tell_revoked(self, grant: HeldGrant) -> None:
        """Call the user's callback; last, once the state is consistent."""
        subscription = self._listener.subscription(grant.subscription)
        if subscription is not None:
            subscription.revoked(grant)

    def _finish_revoke(self, grant: HeldGrant) -> None:
        if self._revoking.pop(grant.number, None) is not None and not grant.over:
            self._give_back(grant)

    def _give_back(self, grant: HeldGrant) -> None:
        """Send the final report of a grant; those who wait for its acks still get an answer."""
        self._stop(grant)
        for level in grant.levels():
            self._collect(level)
        self._drop(grant, GrantNotHeld(grant=grant.stream))
        self.send(wire.SessionUp(revoke_finished=wire.RevokeFinished(grant=grant.number)))

    def _finish(self, grant: HeldGrant, reason: DssError) -> None:
        """The grant is over for the daemon too: nothing more of it becomes durable."""
        stopped = self._stop(grant)
        self._drop(grant, reason)
        self._ask_after_acks(grant.number)
        if stopped:
            self._tell_revoked(grant)

    def _drop(self, grant: HeldGrant, reason: DssError) -> None:
        subscription = self._listener.subscription(grant.subscription)
        self._revoking.pop(grant.number, None)
        self._grants.pop(grant.number, None)
        self._ended[grant.number] = grant
        if len(self._ended) > ENDED_GRANTS_MAX:
            del self._ended[next(iter(self._ended))]
        for level in grant.levels():
            self._dirty.pop(level, None)
            level.end(reason)
            if subscription is not None:
                subscription.ended(level)

    def _refuse_ack(self, error: GrantNotHeld) -> None:
        """Fail the waiters of a report that the daemon refused as a whole: its acks do not
        count."""
        token = error.fields.get("token", "")
        settling = self._settling.pop(int(token), None) if token.isdecimal() else None
        if settling is not None:
            holder, waiters = settling
            fail(waiters, GrantNotHeld(grant=holder.stream))

    def _ask_after_acks(self, grant: int) -> None:
        """The grant is over: acks without an answer by the next pong get none."""
        tokens = [token for token, (held, _) in self._settling.items() if held.number == grant]
        if tokens:
            # The daemon answers in order: before the pong it refused acks that came too late.
            self._pings.ask().add_done_callback(lambda _: self._leave_unknown(tokens))

    def _leave_unknown(self, tokens: list[int]) -> None:
        """Fail these waiters: the daemon got their acks, and may have stored them."""
        for settling in filter(None, (self._settling.pop(token, None) for token in tokens)):
            fail(settling[1], OutcomeUnknown())

    def _end(self, reason: DssError) -> None:
        lost = OutcomeUnknown() if reason.definite else reason
        self._lost = True
        for _, waiters in self._settling.values():
            fail(waiters, lost)
        self._settling.clear()
        for grant in list(self._grants.values()):
            self._finish(grant, lost)
        self._pings.end()
        if self._flush_timer is not None:
            self._flush_timer.cancel()
        self._call.cancel()

    # Writing.

    def _touched(self, grant: HeldGrant, urgent: bool) -> None:
        self._dirty[grant] = None
        if urgent:
            self._wake.set()
        elif self._flush_timer is None:
            loop = asyncio.get_running_loop()
            self._flush_timer = loop.call_later(SETTLE_INTERVAL_MS / 1_000, self._flush_due)

    def _flush_due(self) -> None:
        self._flush_timer = None
        self._wake.set()

    async def _write(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while (item := self._next_item()) is not None:
                await self._connection.write(self._call, item)
            if self._closing:
                await self._call.done_writing()
                return

    def _next_item(self) -> wire.SessionUp | None:
        if not self._answers:
            self._collect_all()
        if self._reports:
            settles = map(settle_of, sent_together(self._reports))
            return wire.SessionUp(settle=wire.SettleBatch(settles=settles))
        first = self._answers or self._outbox
        return first.popleft() if first else None

    def _collect_all(self) -> None:
        for grant in list(self._dirty):
            self._collect(grant)
        self._dirty.clear()
        self._taken_bytes = 0
        for grant in list(self._revoking.values()):
            if not any(level.holds_any for level in grant.levels()):
                self._finish_revoke(grant)

    def _collect(self, grant: HeldGrant) -> None:
        subscription = self._listener.subscription(grant.subscription)
        if subscription is not None:
            subscription.note_current()
        report = grant.report(partial(self._token, grant))
        if report is not None:
            self._reports.extend(report.pieces(SETTLE_RANGES_MAX))
            if report.acked:
                self._keep(grant, report.acked)
                self._listener.acked(grant.subscription)

    def _keep(self, grant: HeldGrant, acked: Ranges) -> None:
        """Remember reported acks: the daemon may have sent some records again before it got
        them."""
        self._kept.extend(grant for each in acked if grant.keep_acked(each))
        while len(self._kept) > ACKED_RANGES_KEPT:
            oldest = self._kept.popleft()
            if not oldest.over:
                oldest.forget_oldest_acked()

    def _token(self, grant: HeldGrant, waiters: list[asyncio.Future[None]]) -> int:
        token = next(self._tokens)
        self._settling[token] = (grant, waiters)
        return token


def _offsets_of(error: AckOutOfRange) -> int:
    """How many offsets were refused; 1 where the daemon does not say."""
    start, end = error.fields.get("start", ""), error.fields.get("end", "")
    if start.isdecimal() and end.isdecimal():
        return max(1, int(end) - int(start))
    return 1
