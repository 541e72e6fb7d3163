"""The handler of a program, and what it does with records.

It takes its time, and then returns, raises, refuses, acknowledges by itself, or thinks twice. Some
records kill the process that handles them.

Invariant: every hand-out, ack and refusal is told when it happens, except the acks of a process
that was taken over, because the daemon may not receive those.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from dss_client.record import DeliveredRecord, grant_behind
from dss_core.errors import DssError
from dss_sim.groups.history import AckDurable, Acked, Nakked
from dss_sim.ordering_keys import text_of
from dss_sim.sessions.run_rules import Handled, Line

if TYPE_CHECKING:
    from dss_sim.sessions.process import Process

QUICK_S = (0.0, 0.03)
SLOW_S = (0.03, 0.7)
TOO_SLOW_S = (1.0, 5.0)
"""Some of these are longer than the ack wait of the programs' own group."""
DELAYS_S = (0.0, 0.3, 0.9)
LONG_DELAYS_S = (1.5, 4.0)
"""Delays that outlive the grant."""


class HandlerFailed(Exception):
    """What a handler raises."""


class Handler:
    """The user code of one run."""

    def __init__(self, process: "Process") -> None:
        self._process = process
        self._program = process.program
        self._world = process.program.world
        self._unfinished: list[Handled] = []
        """Records that handlers had when they were cancelled with the run."""
        self._refusals: tuple[Callable[[DeliveredRecord, Handled], Awaitable[None]], ...] = (
            self._raise,
            self._nak,
            self._nak_and_raise,
            self._nak_and_ack,
            self._ack_and_nak,
            self._be_cancelled,
        )

    async def handle(self, record: DeliveredRecord) -> None:
        """Handle a record for `run`.

        Raises:
            HandlerFailed: this refuses the record.
        """
        await self.work(record, self.begun(record, in_order=True))

    def begun(self, record: DeliveredRecord, *, in_order: bool = False) -> Handled:
        """Note that a record was handed out; judges the order of its key."""
        grant = grant_behind(record)
        link = self._process.links[grant.number]
        group, key = link.groups[grant.subscription], text_of(record.key)
        ordered = key if in_order else None
        line = Line(link.name, group, record.stream, record.grant_epoch, ordered)
        handled = Handled(line, record.offset, record.attempt)
        self._world.run_began(handled, key, redelivered=record.redelivered)
        return handled

    async def work(self, record: DeliveredRecord, handled: Handled) -> None:
        """Do with a record what the user wants.

        Raises:
            HandlerFailed: this refuses the record.
        """
        if self._program.dies_of(handled):
            self._process.die()
            await self._process.loop.create_future()
        try:
            await self._work(record, handled)
        except asyncio.CancelledError:
            self._cancelled(record, handled)
            raise
        finally:
            self._world.runs.ended(handled)

    def _cancelled(self, record: DeliveredRecord, handled: Handled) -> None:
        """It was cancelled, perhaps with its run: then the record comes again, unless it is
        settled."""
        handler = asyncio.current_task()
        if handler is not None and handler.cancelling() and not (record.acked or record.refused):
            self._world.runs.refused(handled, self._world.timeline.now_us, 0)
            self._unfinished.append(handled)

    def run_ended(self) -> None:
        """All handlers of the run are over. A group of tasks cancels them in any order."""
        for handled in sorted(self._unfinished, key=lambda each: (each.line.stream, each.offset)):
            self._told_refused(handled)
        self._unfinished.clear()

    async def _work(self, record: DeliveredRecord, handled: Handled) -> None:
        habits, chance = self._program.habits, self._program.chance
        drawn = chance.random()
        if drawn < habits.too_slow:
            # Its ack wait may run out, and then the record comes again.
            self._told_refused(handled)
            await asyncio.sleep(chance.uniform(*TOO_SLOW_S))
        elif drawn < habits.too_slow + habits.slow:
            await asyncio.sleep(chance.uniform(*SLOW_S))
            await record.in_progress()
            await asyncio.sleep(chance.uniform(*SLOW_S))
        elif drawn < 0.9:
            await asyncio.sleep(chance.uniform(*QUICK_S))
        drawn = chance.random()
        if drawn < habits.refuse:
            await chance.choice(self._refusals)(record, handled)
        else:
            await self._ack(record, handled, sync=drawn > 1 - habits.sync)

    async def _ack(self, record: DeliveredRecord, handled: Handled, *, sync: bool) -> None:
        """Acknowledge it by returning, or here, and then wait until that is durable."""
        line, now_us = handled.line, self._world.timeline.now_us
        newest = self._program.newest
        if newest is not None and newest.name == line.member:
            self._world.tell(Acked(now_us, line.group, line.stream, record.offset, line.member))
        self._world.runs.acked(handled)
        if not sync:
            return
        try:
            await record.ack(sync=True)
        except DssError:
            return  # taken back, or nobody knows
        acked = ((record.offset, record.offset + 1),)
        now_us = self._world.timeline.now_us
        self._world.tell(AckDurable(now_us, line.group, line.stream, acked, line.member))

    def _told_refused(self, handled: Handled, delay_s: float | None = None) -> None:
        line, now_us = handled.line, self._world.timeline.now_us
        until_us = 0 if delay_s is None or delay_s < 1 else now_us + round(delay_s * 1e6)
        place = (line.group, line.stream, handled.offset, line.member)
        self._world.tell(Nakked(now_us, *place, until_us))

    def _refused(self, handled: Handled, delay_s: float | None) -> None:
        delay_us = None if delay_s is None else round(delay_s * 1e6)
        runs, now_us = self._world.runs, self._world.timeline.now_us
        # Later it may be in flight again, and then nobody holds it back.
        self._told_refused(handled, delay_s if runs.counts(handled, now_us, delay_us) else None)
        runs.refused(handled, now_us, delay_us)

    async def _raise(self, record: DeliveredRecord, handled: Handled) -> None:
        self._refused(handled, None)
        raise HandlerFailed

    async def _nak(self, record: DeliveredRecord, handled: Handled) -> None:
        longer = LONG_DELAYS_S if self._program.refuses_for_long else ()
        delay_s = self._program.chance.choice((*DELAYS_S, *longer))
        self._refused(handled, delay_s)
        await record.nak(delay_s)

    async def _nak_and_raise(self, record: DeliveredRecord, handled: Handled) -> None:
        await self._nak(record, handled)
        raise HandlerFailed

    async def _nak_and_ack(self, record: DeliveredRecord, handled: Handled) -> None:
        await self._nak(record, handled)
        await asyncio.sleep(self._program.chance.uniform(*QUICK_S))
        await self._ack(record, handled, sync=True)

    async def _ack_and_nak(self, record: DeliveredRecord, handled: Handled) -> None:
        """Refuse it too late: an acknowledged record is settled."""
        await self._ack(record, handled, sync=True)
        await record.nak()

    async def _be_cancelled(self, record: DeliveredRecord, handled: Handled) -> None:
        """Let something that it awaits be cancelled."""
        self._refused(handled, None)
        raise asyncio.CancelledError
