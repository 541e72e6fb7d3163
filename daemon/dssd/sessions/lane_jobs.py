"""What a session does with the queues of lanes: opens them, and moves records to them.

Invariant: each job that the delivery window asks for is answered, unless its grant or the session
ends first, which cancels it. An append that was begun becomes durable nevertheless, and the next
holder of the lane waits for it. This module must not know what the window makes of an answer.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import assert_never

from dss_core.errors import LogUnreadable, StreamNotFound
from dss_core.lane import MAIN
from dss_core.progress import Ranges
from dssd.leaders.declarations import STALL
from dssd.leaders.delivery_trouble import DeliveryTrouble
from dssd.loop_yield import LoopTurn
from dssd.machines.delivery.events import EntriesRead, LaneOpened, Move, Moved, OpenLane
from dssd.queues.lane import Failed, Lane
from dssd.queues.moving import Parts, move
from dssd.queues.opening import open_lane
from dssd.sessions.log_reads import SessionGrant

LaneAnswer = EntriesRead | LaneOpened | Moved


class LaneJobs:
    """The jobs of one connection; ``grants`` are the scheduler's."""

    def __init__(
        self,
        parts: Parts,
        trouble: DeliveryTrouble,
        grants: Mapping[int, SessionGrant],
        feed: Callable[[LaneAnswer], None],
    ) -> None:
        self._parts = parts
        self._trouble = trouble
        self._grants = grants
        self._feed = feed
        self._asked: asyncio.Queue[OpenLane | Move] = asyncio.Queue()
        """Bounded by the window, which asks for one at a time per lane."""
        self._under_way: dict[int, asyncio.Task[None]] = {}
        """By grant."""

    def ask(self, job: OpenLane | Move) -> None:
        """Take a job of the window."""
        self._asked.put_nowait(job)

    def drop(self, grant: int) -> None:
        """The grant is over."""
        job = self._under_way.pop(grant, None)
        if job is not None:
            job.cancel()

    async def serve(self) -> None:
        """Do the jobs; all sessions share a bound on jobs at a time."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                job = await self._asked.get()
                held = self._grants.get(job.grant)
                if held is not None and held.lane is not None:
                    doing = self._do(job, held, held.lane)
                    self._under_way[job.grant] = tasks.create_task(doing, name=f"lane {held.name}")
                    # One in a turn of the loop: thousands of lanes may be lent at once, and most
                    # have nothing in their queues, so that their jobs never wait.
                    await asyncio.sleep(0)

    async def _do(self, job: OpenLane | Move, held: SessionGrant, lane: Lane) -> None:
        trouble = LaneTrouble(self._trouble, held)
        match job:
            case Move():
                self._answer(job.grant, await move(job, lane, self._parts, trouble))
            case OpenLane():
                # If the queues were removed, the leader takes the lane back.
                with suppress(StreamNotFound):
                    turn = LoopTurn()
                    async for told in open_lane(job, lane, self._parts, trouble):
                        self._answer(job.grant, told)
                        await turn.give_way()
            case _:
                assert_never(job)

    def _answer(self, grant: int, answer: LaneAnswer) -> None:
        if not isinstance(answer, EntriesRead):
            # The window may ask for the next job, or the grant may end, before this returns.
            self._under_way.pop(grant, None)
        self._feed(answer)


@dataclass(frozen=True, slots=True)
class LaneTrouble:
    """Implements `dssd.queues.lane.Trouble` for one lane."""

    trouble: DeliveryTrouble
    held: SessionGrant

    def unreadable(self, level: int, error: LogUnreadable) -> None:
        """A read failed; it is tried again."""
        self.trouble.unreadable(self.held.names[level], self.held.agent.group, error)

    def readable(self, level: int) -> None:
        """A read succeeded."""
        self.trouble.readable(self.held.names[level], self.held.agent.group)

    async def damaged(self, level: int, damaged: Ranges) -> bool:
        """Tell of damage; returns whether the group passes over it, and the event is durable."""
        group = self.held.agent.group
        told = await self.trouble.damaged(self.held.names[level], group, damaged)
        return told and group.on_damage != STALL

    def failed(self, failed: Failed) -> None:
        """Records failed, and are in the queues."""
        self.trouble.failed(self.held.names[MAIN], self.held.agent.group, failed)
