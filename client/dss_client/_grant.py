"""One grant that this client holds: the acks and naks of its records until they are reported.

User code leaves acks here one by one; `_attachment` collects them, as ranges, every few
milliseconds.
Invariants: once `over`, a grant reports nothing and takes nothing: late acks are counted. Every
hand-out is reported once: by the frontier, which passes a record only when it and all records
before it were handed out; or by its offset, if it was out of turn. Out of turn are records that
were handed out before, and those that `Subscription.run` handed out while an earlier record still
waited for its key. A lane, which is a stream with a retry queue, has one such grant for each level,
with offsets of its own; they begin and end together. In the queue every hand-out is out of turn.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from dss_client._acks import Acks, offset_ranges
from dss_client._failure import NOTHING_SAID, Failure
from dss_client._grant_report import GrantReport, Nak, joined
from dss_client._held_shards import HeldShard
from dss_client._spans import nak_delay_ms
from dss_core.errors import DssError, GrantNotHeld, OutcomeUnknown
from dss_core.lane import MAIN
from dss_core.progress import Range, Ranges, clipped, complement, normalised, total

REFUSED_KEPT = 4_096
"""How many refusals of a level of a lane are remembered, for handlers that still have the record:
some 400 KiB at most."""

_EVERY_OFFSET = 1 << 64


class Unsettled(NamedTuple):
    """The records of a grant that were not settled at one moment."""

    held: Ranges
    refused: frozenset[int]

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.held or self.refused)

    def among(self, ranges: Ranges) -> set[int]:
        """The unsettled offsets in these ranges."""
        held = (part for low, high in ranges for part in clipped(self.held, low, high))
        offsets = {at for part in held for at in range(*part)}
        if self.refused:
            offsets.update(at for part in ranges for at in range(*part) if at in self.refused)
        return offsets


class KeepsOrder(Protocol):
    """Keeps the order of keys, as a grant knows it."""

    def acked(self, grant: "HeldGrant", ranges: Ranges) -> Ranges:
        """Ranges are acknowledged; returns those that count."""

    def refused(self, grant: "HeldGrant", ranges: Ranges) -> Ranges:
        """Ranges are refused; returns those that are to be charged."""

    def taken_back(self, grant: "HeldGrant", ranges: Ranges) -> None:
        """These records now belong to the daemon again."""


class HeldGrant:
    """A stream lent to one subscription of this client.

    ``touched`` is called with the grant when it has something to report, and again after each
    report as long as that is so; ``urgent`` tells whether someone waits for it.
    """

    __slots__ = (
        "_again",
        "_awaited",
        "_copies",
        "_early",
        "_handing_out",
        "_held",
        "_kept",
        "_late",
        "_naks",
        "_progressed",
        "_queue",
        "_ranges",
        "_refused",
        "_refused_order",
        "_touched",
        "_waiters",
        "_waiting",
        "acks",
        "ended",
        "floor",
        "frontier",
        "grant_epoch",
        "lane",
        "level",
        "number",
        "order",
        "over",
        "queues",
        "redelivered_below",
        "refused_acked",
        "reported_frontier",
        "shard",
        "stopped",
        "storage_topic_id",
        "stream",
        "subscription",
    )

    def __init__(
        self,
        number: int,
        *,
        subscription: int,
        stream: str,
        grant_epoch: int,
        floor: int,
        redelivered_below: int,
        touched: "Callable[[HeldGrant, bool], None]",
        storage_topic_id: int = 0,
        queues: bool = False,
        shard: HeldShard | None = None,
        lane: "HeldGrant | None" = None,
        level: int = MAIN,
    ) -> None:
        self.number, self.subscription, self.shard = number, subscription, shard
        self.stream = stream
        self.storage_topic_id = storage_topic_id
        """Tells streams of one name apart: a removed topic may be made anew. 0 from an older
        daemon, which does not say it."""
        self.level, self.lane = level, lane or self
        """The grant of the stream itself, which is the one that the daemon lends."""
        self.order: KeepsOrder | None = None
        """In an ordered group: hands out the records of a key one at a time."""
        self.queues = queues
        """Whether a refused record goes to a queue instead of coming again on its level."""
        self.grant_epoch = grant_epoch
        self.redelivered_below = redelivered_below
        """Offsets below it were handed out by this client before."""
        self.floor = floor
        """Every record below it was acknowledged when the stream was lent."""
        self.frontier = self.reported_frontier = floor
        """The offset after the last one handed to the user; earlier ones may still wait."""
        self.stopped = self.over = False
        """Revoked: nothing more is handed out."""
        self.ended: DssError | None = None  # why it is over, for whoever waits for an ack
        self.acks = Acks(self.touch)
        """Where `DeliveredRecord.ack` leaves offsets; the same for the life of the grant."""
        self.refused_acked: Callable[[], None] = _nobody
        """Called with a report that acknowledges a record refused before, which will not come
        again."""
        self._ranges: list[Range] = []
        self._naks: list[Nak] = []
        self._progressed: list[Range] = []
        self._handing_out: list[int] = []
        """Records handed out one by one since the frontier was last computed."""
        self._waiting: Ranges = ()
        """Records taken for a first hand-out one by one, and not handed out yet."""
        self._early: list[Range] = []
        """Records handed out since the last report while an earlier one waited."""
        self._again: list[Range] = []
        """Records handed out since the last report that had been handed out before."""
        self._copies: set[int] = set()
        """Records taken and not handed out that came while their earlier hand-out was not settled.
        Bounded by the credit given to the daemon."""
        self._awaited: list[Ranges] = []
        """Acks whose durability somebody waits for."""
        self._waiters: list[asyncio.Future[None]] = []
        self._held: Ranges = ()
        self._kept: deque[Range] = deque()
        """Reported acks, the oldest first; the reporter bounds them."""
        self._refused: set[int] = set()
        """Offsets of refused records, to come again; bounded by the credit given to the daemon.
        With queues, only the newest refusals."""
        self._refused_order: deque[int] = deque()  # with queues: the same, and some of before
        self._queue: HeldGrant | None = None
        self._late = 0
        self._touched = touched

    def of_level(self, level: int) -> "HeldGrant":
        """The grant of one level of this lane."""
        if level == self.level:
            return self
        if self._queue is None:
            self.queues = True
            self._queue = HeldGrant(
                self.number,
                subscription=self.subscription,
                stream=self.stream,
                grant_epoch=self.grant_epoch,
                floor=_EVERY_OFFSET,
                redelivered_below=_EVERY_OFFSET,
                touched=self._touched,
                storage_topic_id=self.storage_topic_id,
                queues=True,
                lane=self,
                level=level,
            )
            self._queue.stopped = self.stopped
            self._queue.order = self.order
        return self._queue

    def levels(self) -> "tuple[HeldGrant, ...]":
        """The grants of the levels of this lane that records came for."""
        return (self,) if self._queue is None else (self, self._queue)

    @property
    def held_records(self) -> int:
        """How many records were handed out and, as far as reported, not settled."""
        return total(self._held) + len(self._handing_out)

    @property
    def holds_any(self) -> bool:
        """Whether the user holds records that, as far as reported, are not settled."""
        return bool(self._held or self._handing_out)

    @property
    def late(self) -> int:
        """Acks that came after the grant was over and were dropped."""
        return self._late + len(self.acks)

    def handed_out(self, ranges: Ranges) -> None:
        """Ranges of offsets, in order and not empty, were handed to the user."""
        self._sum_up()
        self._note(ranges)
        if self._copies:
            self._copies.difference_update(at for part in ranges for at in range(*part))
        if self._refused:
            for low, high in ranges:
                if not self._refused.isdisjoint(range(low, high)):
                    self._refused.difference_update(range(low, high))
                    self._outlive_naks(low, high)

    def unsettled(self) -> Unsettled:
        """The records that were handed out and are not known to be settled."""
        self._sum_up()
        held = self._held
        if self._awaited:
            held = normalised((*held, *(each for ranges in self._awaited for each in ranges)))
        return Unsettled(held, frozenset(() if self.queues else self._refused))

    def take(self, ranges: Ranges, unsettled: Unsettled | None = None) -> None:
        """Take ranges of offsets, in order, to be handed out one by one by `hand_out`.

        ``unsettled`` is of the moment when they came, if they may have come again.
        """
        self._sum_up()
        # Records below it were handed out before, and do not hold the frontier back.
        fresh = clipped(ranges, self.frontier, _EVERY_OFFSET)
        self._waiting = normalised((*self._waiting, *fresh)) if self._waiting else fresh
        if unsettled is not None:
            self._copies |= unsettled.among(ranges)

    def hand_out(self, offset: int) -> None:
        """Hand out one of the taken records now, in any order."""
        if not self._handing_out:
            self.touch()
        self._handing_out.append(offset)
        if offset in self._refused:
            self._refused.discard(offset)
            self._outlive_naks(offset, offset + 1)
        if self._copies:
            self._copies.discard(offset)

    def _outlive_naks(self, low: int, high: int) -> None:
        """Drop refusals that were not reported before these were handed out again."""
        parts = ((each, clipped((each[:2],), 0, low)) for each in self._naks)
        rest = ((each, (*head, *clipped((each[:2],), high, _EVERY_OFFSET))) for each, head in parts)
        self._naks = [Nak(*part, *each[2:]) for each, left in rest for part in left]

    def acked_meanwhile(self, offset: int) -> bool:
        """Whether a taken record was acknowledged because of its earlier hand-out."""
        return offset in self._copies and self.has_acked(offset)

    def has_acked_all(self, ranges: Ranges) -> bool:
        """Whether all of these, which were handed out, are acknowledged: all were reported, or all
        lie in one run of acks.
        """
        acked = normalised(self._ranges)
        return not _without(_without(ranges, acked), complement(self._held, 0, _EVERY_OFFSET))

    def holds(self, offset: int) -> bool:
        """Whether the record was handed out, and no report has settled it."""
        self._sum_up()
        return _contains(self._held, offset)

    def taken_back(self, ranges: Ranges) -> None:
        """The daemon has moved these records: they are not handed out."""
        self._sum_up()
        self._waiting = _without(self._waiting, ranges)
        if self._copies:
            self._copies = {at for at in self._copies if not _contains(ranges, at)}

    def seen_below(self) -> int:
        """An upper bound of the offsets that were handed out."""
        self._sum_up()
        return self.frontier

    def _sum_up(self) -> None:
        if self._handing_out:
            ranges = offset_ranges(self._handing_out)
            self._handing_out.clear()
            self._note(ranges)

    def _note(self, ranges: Ranges) -> None:
        before, self.frontier = self.frontier, max(self.frontier, ranges[-1][1])
        if self._waiting:
            self._note_among_waiting(ranges, before)
        elif ranges[0][0] < before:
            self._again.extend(clipped(ranges, 0, before))
        self._held = normalised((*self._held, *ranges)) if self._held else ranges

    def _note_among_waiting(self, ranges: Ranges, before: int) -> None:
        """Note ranges of which a part may be taken, and a part was handed out before."""
        again = clipped(ranges, 0, before)
        again = _without(again, self._waiting) if again else ()
        self._again.extend(again)
        self._early.extend(_without(ranges, again) if again else ranges)
        self._waiting = _without(self._waiting, ranges)

    @property
    def refused_any(self) -> bool:
        """Whether any refused record is still to come again."""
        return bool(self._refused)

    def has_acked(self, offset: int) -> bool:
        """Whether an offset that was handed out is acknowledged, reported or not."""
        if offset in self.acks or _contains(self._ranges, offset):
            return True
        if offset in self._refused or offset in self._handing_out:
            return False
        return not _contains(self._held, offset)

    def keep_acked(self, reported: Range) -> bool:
        """Remember a reported ack; returns whether that takes more room."""
        if self._kept and self._kept[-1][1] == reported[0]:
            self._kept[-1] = self._kept[-1][0], reported[1]
            return False
        self._kept.append(reported)
        return True

    def forget_oldest_acked(self) -> None:
        """Forget the oldest remembered ack."""
        self._kept.popleft()

    def acked_before(self, ranges: Ranges) -> Ranges:
        """The ranges among these that are copies of records with a remembered ack."""
        if not self._kept:
            return ()
        return _without(ranges, _without(ranges, normalised(self._kept)))

    def has_refused(self, offset: int) -> bool:
        """Whether an offset was refused, and has neither come again nor been acknowledged since."""
        return offset in self._refused and not self.has_acked(offset)

    def touch(self) -> None:
        """There is something to report."""
        if not self.over:
            self._touched(self, False)

    def ack(self, ranges: Ranges) -> None:
        """Acknowledge ranges of offsets."""
        if self.order is not None:
            ranges = self.order.acked(self, ranges)
        if self.over:
            self._late += total(ranges)
            return
        self._ranges.extend(ranges)
        self._touched(self, False)

    def nak(self, ranges: Ranges, delay_s: float | None, failure: Failure = NOTHING_SAID) -> None:
        """Refuse ranges of offsets; they come again, on whichever level."""
        delay_ms = nak_delay_ms(delay_s)  # where that is not allowed, nothing is refused
        if self.order is not None:
            ranges = self.order.refused(self, ranges)
        if self.over:
            self._late += total(ranges)
            return
        for start, end in ranges:
            self._refused.update(range(start, end))
            if self.queues:
                self._forget_old_refusals(range(start, end))
        self._naks.extend(Nak(start, end, delay_ms, failure) for start, end in ranges)
        self._touched(self, False)

    def refuse_with(self, offsets: list[int]) -> None:
        """Refuse offsets handed out behind a refused one of their key, to come again with it."""
        self._sum_up()
        self._held = _without(self._held, offset_ranges(offsets))
        self._refused.update(offsets)
        self._forget_old_refusals(offsets)

    def _forget_old_refusals(self, newer: Iterable[int]) -> None:
        """Nothing tells that a refused record came again: keep as many as handlers may have."""
        self._refused_order.extend(newer)
        while len(self._refused_order) > REFUSED_KEPT:
            self._refused.discard(self._refused_order.popleft())

    def gone(self, ranges: Ranges) -> None:
        """Refused records in these ranges do not come again: they are lost."""
        if self.order is not None:
            self.order.taken_back(self, ranges)
        refused_before = len(self._refused)
        for start, end in ranges:
            self._refused.difference_update(range(start, end))
        if len(self._refused) < refused_before:
            self.refused_acked()

    def in_progress(self, ranges: Ranges) -> None:
        """Begin the ack wait of these ranges anew."""
        if not self.over:
            self._progressed.extend(ranges)
            self._touched(self, False)

    async def settled(self, ranges: Ranges = ()) -> None:
        """Wait until what was acknowledged so far is durable, these ranges among it.

        Raises:
            GrantNotHeld: the stream was taken back before: the acks of the ranges do not count.
            OutcomeUnknown: the connection or the grant ended before the answer came.
        """
        acked_before = self._reported_any(ranges)
        self._awaited.append(ranges)
        try:
            await self._answered()
        except GrantNotHeld:
            if acked_before:
                raise OutcomeUnknown from None
            raise
        finally:
            self._awaited.remove(ranges)

    async def _answered(self) -> None:
        if self.over:
            raise self.ended or GrantNotHeld(grant=self.stream)
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self._touched(self, True)
        await waiter

    def report(self, next_token: Callable[[list[asyncio.Future[None]]], int]) -> GrantReport | None:
        """The report to send now, if any; its contents then count as reported.

        ``next_token`` gives a token to those who wait for the acks in this report.
        """
        acked = self._collect_acked()
        handed_out, frontier = self._collect_handed_out()
        news = acked or self._naks or self._progressed or handed_out or self._waiters
        if not news and frontier == self.reported_frontier:
            return None
        waiters, self._waiters = self._waiters, []
        naks, self._naks = joined(self._naks), []
        progressed, self._progressed = normalised(self._progressed), []
        self.reported_frontier = frontier
        report = GrantReport(
            grant=self.number,
            acked=acked,
            in_progress=_without(progressed, acked),
            handed_out=_without(handed_out, acked),
            naks=naks,
            frontier=frontier,
            token=next_token(waiters) if waiters else 0,
            level=self.level,
        )
        self._settle(acked, naks)
        return report

    def end(self, reason: DssError) -> None:
        """The grant is over: drop what was not reported, and answer the waiters."""
        if self.over:
            return
        self.stopped = self.over = True
        self.ended = reason
        self._late += total(normalised(self._ranges))
        self._ranges.clear()
        self._naks.clear()
        self._kept.clear()
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(reason)
        self._waiters.clear()

    def _reported_any(self, ranges: Ranges) -> bool:
        """Whether a report acknowledged any of what was handed out in these ranges."""
        self._sum_up()
        settled = _without(ranges, self._held)
        return any(
            offset not in self._refused for low, high in settled for offset in range(low, high)
        )

    def _settle(self, acked: Ranges, naks: tuple[Nak, ...]) -> None:
        refused_before = len(self._refused)
        if refused_before:
            for low, high in acked:
                self._refused.difference_update(range(low, high))
        settled = acked
        if naks:
            settled = normalised((*acked, *((each.start, each.end) for each in naks)))
        self._held = _without(self._held, settled)
        if len(self._refused) < refused_before:
            self.refused_acked()

    def _collect_handed_out(self) -> tuple[Ranges, int]:
        """The records handed out of turn since the last report, and the frontier."""
        self._sum_up()
        frontier = self.frontier
        if self._waiting:
            frontier = min(frontier, self._waiting[0][0])
        handed_out = self._again
        if self._early:
            # Records below the frontier are reported by it.
            early = clipped(normalised(self._early), frontier, _EVERY_OFFSET)
            handed_out = [*handed_out, *early]
        self._early, self._again = [], []
        return normalised(handed_out) if handed_out else (), frontier

    def _collect_acked(self) -> Ranges:
        ranges, self._ranges = self._ranges, []
        ranges += self.acks.take()
        return normalised(ranges) if len(ranges) > 1 else tuple(ranges)


def _nobody() -> None:
    """Nothing waits for a refused record."""


def _contains(ranges: Iterable[Range], offset: int) -> bool:
    return any(start <= offset < end for start, end in ranges)


def _without(ranges: Ranges, gone: Ranges) -> Ranges:
    """The parts of the ranges that others do not cover; both are normalised."""
    if not ranges or not gone:
        return ranges
    low, high = ranges[0][0], ranges[-1][1]
    if gone[0][0] <= low and high <= gone[0][1]:
        return ()
    return complement(normalised((*complement(ranges, low, high), *gone)), low, high)
