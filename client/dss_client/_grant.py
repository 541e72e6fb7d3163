"""One grant that this client holds: the acks and naks of its records until they are reported.

User code leaves acks here one by one; the session collects them, as ranges, every few milliseconds.
Invariant: once `over`, a grant reports nothing and takes nothing: late acks are counted. Within a
grant the offsets handed out only grow, except for redeliveries; those are reported as in progress,
because they lie below the frontier.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from dss_core.errors import DssError, GrantNotHeld
from dss_core.progress import Range, Ranges, complement, normalised, total

Value = TypeVar("Value")

NakRange = tuple[int, int, int | None]
"""Start, end, and the delay in milliseconds where the user chose one."""


@dataclass(frozen=True, slots=True)
class GrantReport:
    """What a grant reports at one moment."""

    grant: int
    acked: Ranges
    naks: tuple[NakRange, ...]
    in_progress: Ranges
    frontier: int
    token: int
    """Not 0: someone waits until the acks are durable."""

    def pieces(self, ranges_max: int) -> "list[GrantReport]":
        """The same in several reports of so many ranges at most; the last has the token.

        Ranges in progress go before naks: the daemon accepts a nak only for records in progress.
        """
        if len(self.acked) + len(self.naks) + len(self.in_progress) <= ranges_max:
            return [self]
        nothing = replace(self, acked=(), naks=(), in_progress=(), token=0)
        return [
            *(replace(nothing, acked=each) for each in _slices(self.acked, ranges_max)),
            *(replace(nothing, in_progress=each) for each in _slices(self.in_progress, ranges_max)),
            *(replace(nothing, naks=each) for each in _slices(self.naks, ranges_max)),
            replace(nothing, token=self.token),
        ]


class HeldGrant:
    """A stream lent to one subscription of this client.

    ``touched`` is called with the grant when it has something to report, and again after each
    report as long as that is so; ``urgent`` tells whether someone waits for it.
    """

    __slots__ = (
        "_held",
        "_late",
        "_naks",
        "_progressed",
        "_ranges",
        "_refused",
        "_touched",
        "_waiters",
        "acked",
        "ended",
        "floor",
        "frontier",
        "grant_epoch",
        "number",
        "over",
        "redelivered_below",
        "reported_frontier",
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
    ) -> None:
        self.number = number
        self.subscription = subscription
        self.stream = stream
        self.storage_topic_id = storage_topic_id
        """Tells streams of one name apart: a removed topic may be made anew. 0 from an older
        daemon, which does not say it."""
        self.grant_epoch = grant_epoch
        self.redelivered_below = redelivered_below
        """Offsets below it were handed out by this client before."""
        self.floor = floor
        """Every record below it was acknowledged when the stream was lent."""
        self.frontier = floor
        """Behind the last offset that was handed to the user."""
        self.reported_frontier = floor
        self.stopped = False
        """Revoked: nothing more is handed out."""
        self.over = False
        self.ended: DssError | None = None
        """Why it is over, for whoever waits for an ack."""
        self.acked: list[int] = []
        """Offsets acknowledged since the last report; `DeliveredRecord.ack` appends here, and to
        an empty list only after a `touch`. One list for the life of the grant."""
        self._ranges: list[Range] = []
        self._naks: list[NakRange] = []
        self._progressed: list[Range] = []
        self._waiters: list[asyncio.Future[None]] = []
        self._held: Ranges = ()
        self._refused: set[int] = set()
        """Offsets that are to come again; bounded by the credit given to the daemon."""
        self._late = 0
        self._touched = touched

    @property
    def held_records(self) -> int:
        """How many records were handed out and not settled, as far as reported."""
        return total(self._held)

    @property
    def holds_any(self) -> bool:
        """Whether the user holds records that are not settled, as far as reported."""
        return bool(self._held)

    @property
    def late(self) -> int:
        """Acks that came after the grant was over and were dropped."""
        return self._late + len(self.acked)

    def handed_out(self, ranges: Ranges) -> None:
        """Ranges of offsets, in order and not empty, were handed to the user."""
        before, self.frontier = self.frontier, max(self.frontier, ranges[-1][1])
        if ranges[0][0] < before:
            self._progressed.extend((low, min(high, before)) for low, high in ranges)
        self._held = normalised((*self._held, *ranges)) if self._held else ranges
        if self._refused:
            for low, high in ranges:
                self._refused.difference_update(range(low, high))

    @property
    def refused_any(self) -> bool:
        """Whether anything is still to come again."""
        return bool(self._refused)

    def has_acked(self, offset: int) -> bool:
        """Whether an offset that was handed out is acknowledged, reported or not."""
        if offset in self.acked or _contains(self._ranges, offset):
            return True
        return offset not in self._refused and not _contains(self._held, offset)

    def has_refused(self, offset: int) -> bool:
        """Whether an offset was refused, and neither came again nor was acknowledged since."""
        return offset in self._refused and not self.has_acked(offset)

    def touch(self) -> None:
        """There is something to report."""
        if not self.over:
            self._touched(self, False)

    def ack(self, ranges: Ranges) -> None:
        """Acknowledge ranges of offsets."""
        if self.over:
            self._late += total(ranges)
            return
        self._ranges.extend(ranges)
        self._touched(self, False)

    def nak(self, ranges: Ranges, delay_s: float | None) -> None:
        """Refuse ranges of offsets; they come again."""
        if self.over:
            self._late += total(ranges)
            return
        for start, end in ranges:
            self._refused.update(range(start, end))
        delay_ms = None if delay_s is None else round(delay_s * 1_000)
        self._naks.extend((start, end, delay_ms) for start, end in ranges)
        self._touched(self, False)

    def in_progress(self, ranges: Ranges) -> None:
        """Work on ranges of offsets goes on."""
        if not self.over:
            self._progressed.extend(ranges)
            self._touched(self, False)

    async def settled(self) -> None:
        """Wait until what was acknowledged so far is durable.

        Raises:
            GrantNotHeld: the stream was taken back before.
            OutcomeUnknown: the connection was lost before the answer came.
        """
        if self.over:
            raise self.ended or GrantNotHeld(grant=self.stream)
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self._touched(self, True)
        await waiter

    def report(self, next_token: Callable[[list[asyncio.Future[None]]], int]) -> GrantReport | None:
        """What is to be reported now, if anything; it then counts as reported.

        ``next_token`` gives a token to those who wait for the acks in this report.
        """
        acked = self._collect_acked()
        news = acked or self._naks or self._progressed or self._waiters
        if not news and self.frontier == self.reported_frontier:
            return None
        waiters, self._waiters = self._waiters, []
        naks, self._naks = tuple(self._naks), []
        progressed, self._progressed = normalised(self._progressed), []
        if progressed and acked:
            progressed = _without(progressed, acked)
        self._settle(acked, naks)
        self.reported_frontier = self.frontier
        return GrantReport(
            grant=self.number,
            acked=acked,
            naks=naks,
            in_progress=progressed,
            frontier=self.frontier,
            token=next_token(waiters) if waiters else 0,
        )

    def end(self, reason: DssError) -> None:
        """The grant is over: drop what was not reported, tell those who wait."""
        if self.over:
            return
        self.stopped = self.over = True
        self.ended = reason
        self._late += total(normalised(self._ranges))
        self._ranges.clear()
        self._naks.clear()
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(reason)
        self._waiters.clear()

    def _settle(self, acked: Ranges, naks: tuple[NakRange, ...]) -> None:
        if self._refused:
            for low, high in acked:
                self._refused.difference_update(range(low, high))
        if naks:
            acked = normalised((*acked, *((start, end) for start, end, _ in naks)))
        if self._held and acked:
            self._held = _without(self._held, acked)

    def _collect_acked(self) -> Ranges:
        offsets = self.acked
        if not offsets:
            ranges, self._ranges = self._ranges, []
            return normalised(ranges) if len(ranges) > 1 else tuple(ranges)
        ranges, self._ranges = self._ranges, []
        acked = normalised([*ranges, *offset_ranges(offsets)])
        offsets.clear()
        return acked


def _slices(values: tuple[Value, ...], most: int) -> Iterator[tuple[Value, ...]]:
    return (values[at : at + most] for at in range(0, len(values), most))


def _contains(ranges: Iterable[Range], offset: int) -> bool:
    return any(start <= offset < end for start, end in ranges)


def _without(ranges: Ranges, gone: Ranges) -> Ranges:
    """The parts of the ranges that others do not cover; both are normalised and not empty."""
    low, high = ranges[0][0], ranges[-1][1]
    if gone[0][0] <= low and high <= gone[0][1]:
        return ()
    return complement(normalised((*complement(ranges, low, high), *gone)), low, high)


def offset_ranges(offsets: list[int]) -> Ranges:
    """Offsets, in any order and perhaps repeated, as ranges."""
    # In-order acks without a gap, by far the usual case, cost one set and no loop in Python.
    distinct = set(offsets)
    first, last = min(distinct), max(distinct)
    if last - first + 1 == len(distinct):
        return ((first, last + 1),)
    return normalised((offset, offset + 1) for offset in distinct)
