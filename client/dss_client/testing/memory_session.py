"""The one session of a daemon in memory, with its grants and deliveries.

Invariants: a stream is lent to the newest subscription; records that were sent under an earlier
grant, and may have been handed out, are marked when they are sent again. A newer client is let in
once the older one has said how far it handed out, or its time for that is over.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count, groupby
from typing import Any

from dss_api.v1 import sessions_pb2, types_pb2
from dss_client.testing.memory_stream import MemoryStream
from dss_core import frame as frames
from dss_core.errors import (
    AckOutOfRange,
    DssError,
    GrantNotHeld,
    IllegalArgument,
    NotOpened,
    NotSubscribed,
    SessionNotFound,
    SessionTakenOver,
)
from dss_core.filters import SubscriptionFilter, TopicFilter
from dss_core.progress import Ranges, complement, normalised

Down = asyncio.Queue[sessions_pb2.SessionDown]

SESSION_ID = b"s" * 16
NAK_DELAY_MS = 100
"""After this time a refused record comes again, if the client names no delay."""
DRAIN_OF_LEASE = 0.5
"""How long an older client has to give its streams back, as it is told."""
DRAINED_OF_LEASE = 0.45
"""After this time its streams are lent again even without its answer."""


@dataclass
class _Lent:
    """A stream that is lent to the session."""

    partition: int
    subscription: int
    matching: TopicFilter
    frontier: int
    """Every offset below it was handed out under this grant, or is not for the user."""
    early: set[int] = field(default_factory=set)
    """Handed out above the frontier."""
    resting: set[int] = field(default_factory=set)
    """Refused, and not sent again yet."""
    unsure: set[int] = field(default_factory=set)
    """Offsets sent again whose new hand-out was not reported yet."""
    ending: bool = False
    """The stream was asked back for a newer client: nothing more is sent."""

    def told(self, frontier: int, handed_out: Ranges) -> list[int]:
        """Take the client's report; returns the offsets that it has handed out, or handed out
        again."""
        told = [offset for low, high in handed_out for offset in range(low, high)]
        self.unsure.difference_update(told)
        self.early.update(offset for offset in told if offset >= self.frontier)
        if frontier > self.frontier:
            passed = range(self.frontier, frontier)
            told += [offset for offset in passed if offset not in self.early]
            self.early.difference_update(passed)
            self.frontier = frontier
        return told


class MemorySession:
    """The session half of a `MemoryDaemon`."""

    def __init__(self, partitions: int) -> None:
        self.streams = [MemoryStream(f"t/0/{partition}") for partition in range(partitions)]
        self.settles: list[sessions_pb2.Settle] = []
        self.opens: list[sessions_pb2.Open] = []
        self.subscribes: list[sessions_pb2.Subscribe] = []
        self.unsubscribes: list[int] = []
        self.pings = 0
        self.revoke_finished: list[int] = []
        self.pauses_taken: list[int] = []
        """The pause numbers that clients confirmed."""
        self.mute_settled = False
        """Acks are taken, but not answered."""
        self.mute_revoked = False
        """The ends of revokes are heard, but not answered."""
        self.mute_subscribed = False
        """Subscriptions are heard, but not answered."""
        self.ordered = False
        """Streams are lent with queues, and in the order of keys; a test plays the queues
        itself."""
        self.taken_back: list[tuple[int, bool]] = []
        """The client's answers to requests to give records back: their numbers, and whether it had
        them."""
        self.hold_back = False
        """Grants, new frames and naks send no records; a test delivers them."""
        self.marks_redelivered = True
        """If it is not set, only records that the client itself marks are marked as redelivered."""
        self.lease_ms = 6_000
        self._down: Down | None = None
        self._filters: dict[int, TopicFilter] = {}
        self._groups: set[str] = set()
        self._grants = count(1)
        self._pause_turns = count(1)
        self._lent: dict[int, _Lent] = {}
        self._drained = asyncio.Event()
        """Set when nothing is lent any more, or the client that had it is gone."""

    async def attach(
        self, items: AsyncIterator[sessions_pb2.SessionUp]
    ) -> AsyncIterator[sessions_pb2.SessionDown]:
        """One session, the same for every client; a newer connection takes it over."""
        down: Down = asyncio.Queue()
        reading = asyncio.create_task(self._read_session(items, down))
        try:
            while (item := await down.get()).WhichOneof("item"):
                yield item
        finally:
            reading.cancel()
            if self._down is down:
                self._down = None
                self._drained.set()

    async def _read_session(self, items: AsyncIterator[sessions_pb2.SessionUp], down: Down) -> None:
        async for up in items:
            try:
                if up.WhichOneof("item") == "open" and not up.open.session_id:
                    await self._drain_older(down)
                self.take_up(up, down)
            except DssError as error:
                number = getattr(getattr(up, up.WhichOneof("item") or "", None), "subscription", 0)
                down.put_nowait(_refusal(error, subscription=number))
        down.put_nowait(sessions_pb2.SessionDown())

    async def _drain_older(self, newer: Down) -> None:
        """Have the attached client give back what it has not handed out, before another one
        begins."""
        if self._down in (None, newer) or not self._lent:
            return
        self._drained.clear()
        for grant, lent in self._lent.items():
            lent.ending = True
            self.revoke(grant, deadline_ms=int(DRAIN_OF_LEASE * self.lease_ms))
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAINED_OF_LEASE * self.lease_ms / 1_000):
                await self._drained.wait()

    def take_up(self, up: sessions_pb2.SessionUp, down: Down) -> None:
        """An item came from the client.

        Raises:
            DssError: it is refused.
        """
        kind = up.WhichOneof("item")
        if self._down is not down:
            if kind != "open":
                raise NotOpened
            self._on_open(up.open, down)
            return
        match kind:
            case "subscribe":
                self._on_subscribe(up.subscribe)
            case "unsubscribe":
                self._on_unsubscribe(up.unsubscribe.subscription)
            case "settle":
                for settle in up.settle.settles:
                    self.on_settle(settle)
            case "revoke_finished":
                self._on_revoke_finished(up.revoke_finished.grant)
            case "open":
                rule = "it comes once, as the first item"
                raise IllegalArgument(argument="open", rule=rule)
            case _:
                self._take_rare(up, kind)

    def _take_rare(self, up: sessions_pb2.SessionUp, kind: str | None) -> None:
        match kind:
            case "ping":
                self.pings += 1
                self.say(pong=sessions_pb2.Pong(token=up.ping.token))
            case "pause_taken":
                self.pauses_taken.append(up.pause_taken.turn)
            case "taken_back":
                self.on_taken_back(up.taken_back)
            case _:
                raise IllegalArgument(argument="item", rule="one that this daemon knows")

    def _on_open(self, item: sessions_pb2.Open, down: Down) -> None:
        client_id = item.client_id or "chosen"
        if item.session_id not in (b"", SESSION_ID):
            error = SessionTakenOver if self.opens else SessionNotFound
            down.put_nowait(_refusal(error(client_id=client_id), final=True))
            down.put_nowait(sessions_pb2.SessionDown())
            return
        if self._down is not None:
            self._down.put_nowait(_refusal(SessionTakenOver(client_id=client_id), final=True))
            self._down.put_nowait(sessions_pb2.SessionDown())
        resumed = item.session_id == SESSION_ID or bool(self.opens and not item.clean_start)
        if not resumed:
            self._filters.clear()
        for grant in list(self._lent):
            self._end(grant, reported=False)
        self._down = down
        self.opens.append(item)
        opened = sessions_pb2.Opened(
            client_id=client_id,
            session_id=SESSION_ID,
            session_epoch=len(self.opens),
            session_present=resumed,
            lease_ms=self.lease_ms,
            credit_records=1_000,
            credit_bytes=8 << 20,
        )
        self.say(opened=opened)

    def _on_subscribe(self, item: sessions_pb2.Subscribe) -> None:
        self.subscribes.append(item)
        parsed = SubscriptionFilter.parse(item.filter)
        number = item.subscription
        if not number:
            raise IllegalArgument(argument="subscription", rule=f"1 to {(1 << 63) - 1}")
        self._filters[number] = parsed.filter
        if self.mute_subscribed:
            return
        group = parsed.group or f"~{SESSION_ID.hex()[:12]}/{number}"
        declared = group not in self._groups
        self._groups.add(group)
        self.say(
            subscribed=sessions_pb2.Subscribed(subscription=number, group=group, declared=declared)
        )
        self.grant_all(number)

    def _on_unsubscribe(self, number: int) -> None:
        self.unsubscribes.append(number)
        if self._filters.pop(number, None) is None:
            raise NotSubscribed(subscription=number)
        for grant, lent in list(self._lent.items()):
            if lent.subscription == number:
                self._end(grant, reported=False)
        self.say(unsubscribed=sessions_pb2.Unsubscribed(subscription=number))

    def _on_revoke_finished(self, grant: int) -> None:
        self.revoke_finished.append(grant)
        lent = self._lent.get(grant)
        if lent is None or self.mute_revoked:
            return
        self._end(grant, reported=True)
        if not lent.ending:
            self.say(revoked=sessions_pb2.Revoked(grant=grant, reason="revoked"))

    def on_settle(self, settle: sessions_pb2.Settle) -> None:
        """Acks, naks and a frontier came."""
        self.settles.append(settle)
        if settle.level:
            # A test plays the retry queue itself.
            self._answer_settle(settle)
            return
        grant = settle.grant
        lent = self._lent.get(grant)
        if lent is None:
            token = settle.token if settle.acked else 0
            self.say(error=_refusal(GrantNotHeld(grant=grant, token=token), grant=grant).error)
            return
        stream = self.streams[lent.partition]
        acked, handed_out = _ranges(settle.acked), _ranges(settle.handed_out)
        said = (*acked, *_ranges(settle.in_progress), *handed_out, *_ranges(settle.naks))
        for start, end in said:
            if end > stream.sent_end:
                error = AckOutOfRange(start=start, end=end, grant=grant)
                self.say(error=_refusal(error, grant=grant).error)
                return
        stream.progress = stream.progress.with_acked(acked)
        for offset in lent.told(settle.frontier, handed_out):
            stream.hand_outs[offset] = stream.hand_outs.get(offset, 0) + 1
        stream.frontier = max(stream.frontier, settle.frontier)
        if not self.hold_back:
            for nak in settle.naks:
                self._on_nak(grant, nak)
        self._answer_settle(settle)

    def on_taken_back(self, item: sessions_pb2.TakenBack) -> None:
        """The client answers a request to give records back."""
        self.taken_back.append((item.number, item.out))

    def _answer_settle(self, settle: sessions_pb2.Settle) -> None:
        if settle.token and not self.mute_settled:
            self.say(settled=sessions_pb2.Settled(token=settle.token))

    def _on_nak(self, grant: int, nak: sessions_pb2.Nak) -> None:
        lent = self._lent[grant]
        # A nak of a record that was sent again and not handed out yet is older than that: ignore
        # it.
        refused = set(range(nak.start, nak.end)) - lent.unsure - lent.resting
        lent.resting |= refused
        delay_s = (nak.delay_ms if nak.HasField("delay_ms") else NAK_DELAY_MS) / 1_000
        if refused:
            loop = asyncio.get_running_loop()
            loop.call_later(delay_s, self._deliver_again, grant, refused)

    def _deliver_again(self, grant: int, refused: set[int]) -> None:
        lent = self._lent.get(grant)
        if lent is not None and self._down is not None:
            lent.resting -= refused
            again = normalised((offset, offset + 1) for offset in refused)
            end = self.streams[lent.partition].end
            self._deliver(grant, complement(again, 0, end), redelivered=True)

    def say(self, **item: Any) -> None:  # noqa: ANN401 - any one item of the wire
        """Send one item down the live session."""
        assert self._down is not None, "no client has a session open"
        self._down.put_nowait(sessions_pb2.SessionDown(**item))

    def revoke(self, grant: int, *, deadline_ms: int = 10_000) -> None:
        """Ask for a stream back; it is over once the client has finished."""
        self.say(revoke=sessions_pb2.Revoke(grant=grant, deadline_ms=deadline_ms))

    def set_paused(self, subscription: int, *, paused: bool) -> int:
        """Pause or resume the group of a subscription; returns the number that the client
        confirms."""
        turn = next(self._pause_turns)
        self.say(
            pause_set=sessions_pb2.PauseSet(subscription=subscription, paused=paused, turn=turn)
        )
        return turn

    def grant_all(self, subscription: int) -> None:
        """Lend every stream and deliver what is not acknowledged."""
        for partition in range(len(self.streams)):
            grant = self.grant(subscription, partition)
            if not self.hold_back:
                self.deliver(grant)

    def grant(self, subscription: int, partition: int) -> int:
        """Lend a stream; returns the number of the grant."""
        grant = next(self._grants)
        progress = self.streams[partition].progress
        matching = self._filters.get(subscription, TopicFilter.parse("t/#"))
        self._lent[grant] = _Lent(partition, subscription, matching, progress.floor)
        self.say(
            granted=sessions_pb2.Granted(
                grant=grant,
                subscription=subscription,
                stream=self.streams[partition].name,
                grant_epoch=grant,
                progress=types_pb2.Progress(
                    floor=progress.floor, ranges=_wire_ranges(progress.ranges)
                ),
                queues=self.ordered,
                ordered=self.ordered,
            )
        )
        return grant

    def _end(self, grant: int, *, reported: bool) -> None:
        """A grant is over; ``reported``: its client has said how far it handed out."""
        stream = self.streams[self._lent.pop(grant).partition]
        if not reported:
            stream.redelivered_below = max(stream.redelivered_below, stream.sent_end)
        if not self._lent:
            self._drained.set()

    def deliver_new(self, partition: int, base: int) -> None:
        """A frame was stored: send it to whoever the stream is lent to."""
        grants = [grant for grant, lent in self._lent.items() if lent.partition == partition]
        if grants:
            self._deliver(grants[-1], ((0, base),))

    def deliver(self, grant: int, redelivered: bool = False) -> None:
        """Send what the grant's stream holds, acknowledged offsets masked."""
        self._deliver(grant, (), redelivered=redelivered)

    def deliver_part(self, grant: int, start: int, end: int, *, redelivered: bool = False) -> None:
        """Send the frames that hold some offsets, all others masked."""
        stream = self.streams[self._lent[grant].partition]
        self._deliver(grant, ((0, start), (end, stream.end)), redelivered=redelivered)

    def _deliver(self, grant: int, mask: Ranges, *, redelivered: bool = False) -> None:
        lent = self._lent[grant]
        if lent.ending:
            return
        stream = self.streams[lent.partition]
        done = ((0, stream.progress.floor), *stream.progress.ranges)
        for base, frame, masked in stream.visible(lent.matching, (*done, *mask)):
            end = base + frames.read_header(frame).records
            wanted = [at for part in complement(masked, base, end) for at in range(*part)]
            if redelivered:
                lent.unsure.update(at for at in wanted if at < stream.sent_end)
            stream.sent_end = max(stream.sent_end, end)
            for (seen, attempt), alike in groupby(wanted, partial(self._past, stream)):
                offsets = list(alike)
                outside = ((base, offsets[0]), *masked, (offsets[-1] + 1, end))
                self.say(
                    deliver=sessions_pb2.Deliver(
                        grant=grant,
                        frames=frame,
                        mask=_wire_ranges(normalised(outside)),
                        redelivered=redelivered or seen,
                        attempt=attempt,
                    )
                )

    def _past(self, stream: MemoryStream, offset: int) -> tuple[bool, int]:
        """Whether a record is marked as perhaps seen before, and its attempt."""
        known = stream.hand_outs.get(offset, 0)
        seen = bool(known) or offset < stream.redelivered_below
        return self.marks_redelivered and seen, 1 + known


async def until(condition: Callable[[], object]) -> None:
    """Let the loop run until the condition holds, for at most five seconds."""
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - no event tells what another task has seen
            await asyncio.sleep(0)


def wire_error(error: DssError) -> types_pb2.Error:
    """An error as the wire has it."""
    return types_pb2.Error(
        code=error.code, message=error.message, fields=error.fields, definite=error.definite
    )


def _refusal(
    error: DssError, *, subscription: int = 0, grant: int = 0, final: bool = False
) -> sessions_pb2.SessionDown:
    item = sessions_pb2.SessionError(
        error=wire_error(error), subscription=subscription, grant=grant, final=final
    )
    return sessions_pb2.SessionDown(error=item)


def _ranges(items: Iterable[types_pb2.Range | sessions_pb2.Nak]) -> Ranges:
    return tuple((each.start, each.end) for each in items)


def _wire_ranges(ranges: Ranges) -> list[types_pb2.Range]:
    return [types_pb2.Range(start=start, end=end) for start, end in ranges if start < end]
