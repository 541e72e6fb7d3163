"""Work on queues by the daemon's own code: its moves, its openings and its one writer.

It runs on a loop in the world's time. Invariant: what a job awaits comes as an event of the
schedule, and so does its answer to the session; a daemon that dies takes the loop and the writer
along, and `queue_log` decides about appends under way.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from dss_core.errors import StreamNotFound
from dss_core.ids import StreamId
from dss_core.lane import MAIN
from dss_core.progress import Ranges
from dss_sim.groups.history import LaneTaken, Passed
from dss_sim.groups.queue_log import QueueLog
from dss_sim.groups.queue_plans import SLOW_READ_US
from dss_sim.groups.reads import READ_US
from dss_sim.sessions.timeline import Timeline, VirtualLoop
from dssd.leaders.declarations import STALL
from dssd.machines.delivery.events import EntriesRead, LaneOpened, Move, Moved, OpenLane
from dssd.queues.lane import Failed, Lane
from dssd.queues.moving import Parts, move
from dssd.queues.opening import open_lane
from dssd.queues.writers import QueueWriters

if TYPE_CHECKING:
    from dss_core.errors import LogUnreadable
    from dss_sim.groups.session_host import SimulatedSession
    from dss_sim.groups.world import World

LaneAnswer = EntriesRead | LaneOpened | Moved


class QueueWork(Timeline):
    """The loop of one daemon after the other, and its jobs."""

    def __init__(self, world: "World") -> None:
        super().__init__()
        self.log = QueueLog(world)
        self._world = world
        self._delays = world.chance.of("reads of queues")
        self._failed: list[BaseException] = []
        self._begin()

    def _begin(self) -> None:
        self._loop = VirtualLoop(self)  # type: ignore[abstract]  # as much as is used
        self.parts = Parts(
            self.log,  # type: ignore[arg-type]  # as much of it as is asked for
            ToldWriters(self._world, self.log),
            WorldClock(self._world),  # type: ignore[arg-type]
        )

    def after(self, span_us: int, act: "asyncio.Handle | Callable[[], None]") -> None:
        """Return after so much time."""
        self._world.schedule.after(max(span_us, 0), partial(self._come, act))

    def _come(self, act: "asyncio.Handle | Callable[[], None]") -> None:
        self.soon(act)
        self.run()

    def run(self) -> None:
        """Run everything that can go on.

        Raises:
            BaseException: a job raised it.
        """
        self.now_us = self._world.schedule.now_us
        while self._ready:
            self.step()
        if self._failed:
            raise self._failed.pop()

    async def rest(self) -> None:
        """How long a read takes."""
        low, high = READ_US
        if self._world.chance.strike("slow_queue_reads") is not None:
            low, high = SLOW_READ_US
        await asyncio.sleep((low + self._delays.random() * (high - low)) / 1e6)

    def start(self, job: Any, name: str) -> "asyncio.Task[None]":  # noqa: ANN401 - any coroutine
        """Begin a job."""
        task: asyncio.Task[None] = self._loop.create_task(job, name=name)
        task.add_done_callback(self._ended)
        self.run()
        return task

    def _ended(self, task: "asyncio.Task[None]") -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._failed.append(error)

    def crash(self) -> None:
        """The daemon dies, and begins anew."""
        self._loop.dispose()
        self._ready.clear()
        self.log.crash()
        self._begin()


class ToldWriters(QueueWriters):
    """The real writers; the judge is told of each lane that is taken over."""

    def __init__(self, world: "World", log: QueueLog) -> None:
        super().__init__(log)  # type: ignore[arg-type]  # as much of it as is asked for
        self._world = world
        self._queue_log = log

    async def take_over(self, retry: StreamId, epoch: int) -> bool:
        """As the daemon's."""
        is_taken = await super().take_over(retry, epoch)
        if is_taken:
            world, queue = self._world, self._queue_log.queue(retry)
            main = world.names[queue.levels[MAIN]]
            world.tell(LaneTaken(world.schedule.now_us, queue.group, main, epoch))
        return is_taken


class WorldClock:
    """Part of `dssd.clock.Clock`."""

    def __init__(self, world: "World") -> None:
        self._schedule = world.schedule

    def wall_ms(self) -> int:
        """The time of the world."""
        return self._schedule.now_us // 1_000

    def now_ms(self) -> int:
        """The same."""
        return self.wall_ms()


class SessionJobs:
    """The jobs of one session, as `dssd.sessions.lane_jobs`."""

    def __init__(self, world: "World", session: "SimulatedSession") -> None:
        self._world = world
        self._session = session
        self._under_way: dict[int, asyncio.Task[None]] = {}

    def ask(self, job: OpenLane | Move) -> None:
        """The window wants this done."""
        self._world.after(READ_US, partial(self._begin, job), self._session.host)

    def _begin(self, job: OpenLane | Move) -> None:
        held = self._session.grants.get(job.grant)
        if held is not None and held.lane is not None and not self._session.closed:
            trouble = LaneTrouble(self._world, self._session, job.grant)
            doing = self._do(job, held.lane, trouble)
            self._under_way[job.grant] = self._world.queue_work.start(doing, f"lane {job.grant}")

    async def _do(self, job: OpenLane | Move, lane: Lane, trouble: "LaneTrouble") -> None:
        parts = self._world.queue_work.parts
        if isinstance(job, Move):
            self._answer(await move(job, lane, parts, trouble))
            return
        with suppress(StreamNotFound):
            async for told in open_lane(job, lane, parts, trouble):
                self._answer(told)

    def _answer(self, answer: LaneAnswer) -> None:
        take = partial(self._session.take_lane_answer, answer)
        self._world.schedule.after(0, take, self._session.host)

    def drop(self, grant: int) -> None:
        """The grant is over."""
        job = self._under_way.pop(grant, None)
        if job is not None:
            job.cancel()
            self._world.queue_work.run()

    def drop_all(self) -> None:
        """The session is over."""
        for grant in list(self._under_way):
            self.drop(grant)


class LaneTrouble:
    """Implements `dssd.queues.lane.Trouble`."""

    def __init__(self, world: "World", session: "SimulatedSession", grant: int) -> None:
        self._world = world
        self._session = session
        self._grant = grant

    def unreadable(self, level: int, error: "LogUnreadable") -> None:
        """Only for people."""

    def readable(self, level: int) -> None:
        """Only for people."""

    def failed(self, failed: Failed) -> None:
        """Only for people."""

    async def damaged(self, level: int, damaged: Ranges) -> bool:
        """As `dss_sim.groups.reads` reports it, if it is to be passed."""
        world, held = self._world, self._session.grants.get(self._grant)
        if held is None or held.agent.group.on_damage == STALL:
            return False
        if world.schedule.now_us < world.writer.full_until_us or level != MAIN:
            return False
        group, stream = held.agent.group.name, world.names[held.stream]
        for start, end in damaged:
            world.tell(Passed(world.schedule.now_us, group, stream, start, end))
        return True
