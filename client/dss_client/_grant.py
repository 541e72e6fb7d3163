"""What this client holds of one lent stream, and what it still has to say about it.

User code leaves acks here one by one; the session collects them, as ranges, every few
milliseconds. Invariant: once `over`, a grant says nothing more and takes nothing more: what comes
late is counted. Offsets handed out only grow within a grant, redeliveries aside.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from dss_core.errors import DssError, GrantNotHeld
from dss_core.progress import Range, Ranges, normalised, total

NakRange = tuple[int, int, int | None]
"""Start, end, and the delay in milliseconds where the user chose one."""


@dataclass(frozen=True, slots=True)
class GrantReport:
    """What a grant has to say at one moment."""

    grant: int
    acked: Ranges
    naks: tuple[NakRange, ...]
    in_progress: Ranges
    frontier: int
    token: int
    """Not 0: someone waits until the acks are durable."""


class HeldGrant:
    """A stream lent to one subscription of this client.

    ``touched`` is called with the grant when it has something to say, and again after each report
    as long as that is so; ``urgent`` tells whether someone waits for it.
    """

    __slots__ = (
        "_late",
        "_naks",
        "_progressed",
        "_ranges",
        "_settled_count",
        "_touched",
        "_waiters",
        "acked",
        "ended",
        "floor",
        "frontier",
        "grant_epoch",
        "handed_count",
        "number",
        "over",
        "redelivered_below",
        "reported_frontier",
        "stopped",
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
    ) -> None:
        self.number = number
        self.subscription = subscription
        self.stream = stream
        self.grant_epoch = grant_epoch
        self.redelivered_below = redelivered_below
        """Offsets below it were handed out by this client before."""
        self.floor = floor
        """Every record below it was acknowledged when the stream was lent."""
        self.frontier = floor
        """Every offset below it was handed to the user, or is masked."""
        self.reported_frontier = floor
        self.handed_count = 0
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
        self._settled_count = 0
        self._late = 0
        self._touched = touched

    @property
    def outstanding(self) -> int:
        """Records handed out and not yet acknowledged or refused, as far as reported."""
        return self.handed_count - self._settled_count

    @property
    def late(self) -> int:
        """Acks that came after the grant was over and were dropped."""
        return self._late + len(self.acked)

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
        """What is to be said now, if anything; it is considered said.

        ``next_token`` gives a token to those who wait for the acks in this report.
        """
        acked = self._collect_acked()
        news = acked or self._naks or self._progressed or self._waiters
        if not news and self.frontier == self.reported_frontier:
            return None
        waiters, self._waiters = self._waiters, []
        naks, self._naks = tuple(self._naks), []
        progressed, self._progressed = normalised(self._progressed), []
        self._settled_count += total(acked) + sum(end - start for start, end, _ in naks)
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

    def _collect_acked(self) -> Ranges:
        offsets = self.acked
        if not offsets:
            ranges, self._ranges = self._ranges, []
            return normalised(ranges) if len(ranges) > 1 else tuple(ranges)
        ranges, self._ranges = self._ranges, []
        acked = normalised([*ranges, *offset_ranges(offsets)])
        offsets.clear()
        return acked


def offset_ranges(offsets: list[int]) -> Ranges:
    """Offsets, in any order and perhaps repeated, as ranges."""
    # In-order acks without a gap, by far the usual case, cost one set and no loop in Python.
    distinct = set(offsets)
    first, last = min(distinct), max(distinct)
    if last - first + 1 == len(distinct):
        return ((first, last + 1),)
    return normalised((offset, offset + 1) for offset in distinct)
