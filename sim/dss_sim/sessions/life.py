"""One life of the daemon: the real parts, opened, run and closed in the order of `dssd.opening`.

Invariant: a life ends once: by `stop`, in order; by `crash`, between two steps; or by an error,
which is a finding. It must not know what its clients want.
"""

import asyncio
import traceback
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from contextvars import copy_context
from random import Random
from typing import Any

from dss_core.changes import EditGroup, PauseGroup, ResumeGroup
from dss_core.errors import DiskFull
from dss_sim.sessions.call import Call
from dss_sim.sessions.clocks import LifeClock
from dss_sim.sessions.memory_log import MemoryLog, Records
from dss_sim.sessions.slow_store import ASKER, Disk, SlowStore
from dss_sim.sessions.timeline import Timeline, VirtualLoop
from dssd import limits
from dssd.events.teller import Unheard
from dssd.exception_groups import condition_in
from dssd.leaders.groups import Groups
from dssd.leaders.registry import BOOT_ID_BYTES, Registry
from dssd.machines.leader.timing import LeaderTiming
from dssd.operations.kinds.group_edits import GroupEdits
from dssd.operations.kinds.pause import PAUSE, RESUME, Pauses
from dssd.operations.operations import Operations
from dssd.operations.pause_ends import PauseEnds
from dssd.operations.plans import KindTable
from dssd.rpc.sessions import SessionsServicer
from dssd.sessions.sessions import Sessions
from dssd.topics.catalogue import Catalogue


class Life:
    """A daemon's process. ``over`` is called when it has ended by itself or after `stop`."""

    def __init__(
        self,
        timeline: Timeline,
        disk: Disk,
        records: Records,
        clock: LifeClock,
        chance: Random,
        *,
        timing: LeaderTiming,
        died: Callable[[], None],
    ) -> None:
        # Its loop, files and sockets are incomplete, but nobody asks for the missing parts here.
        self.loop = VirtualLoop(timeline)  # type: ignore[abstract]
        self.store = SlowStore(disk, timeline, self.loop, died)
        self.log = MemoryLog(records, self.loop, chance)
        self.clock = clock
        self.catalogue: Catalogue
        self.groups: Groups
        self.registry: Registry
        self.sessions: Sessions
        self.operations: Operations
        self.serving = False
        self.stopping = False
        self.failure = ""
        """Note an unexpected error of a part or of a call."""
        self.calls: dict[Call, asyncio.Task[None]] = {}
        self._operators: list[asyncio.Task[object]] = []
        self._chance = chance
        self._timing = timing
        self._stop = asyncio.Event()
        self._root = self.loop.create_task(self._run(), name="daemon")

    def has_ended(self) -> bool:
        """Whether its process has come to its end."""
        return self._root.done()

    def stop(self) -> None:
        """Tell it to stop in order."""
        self.stopping = True
        self._stop.set()

    def crash(self) -> None:
        """Let it die here and now."""
        self.serving = False
        self.loop.abandon()
        for call in self.calls:
            call.lost()
        self.calls.clear()

    def begin_call(self, call: Call) -> None:
        """Begin a client's call of Attach."""
        context = copy_context()
        context.run(ASKER.set, call)
        name = f"call of {call.name}"
        self.calls[call] = self.loop.create_task(self._answer(call), name=name, context=context)

    def cancel_call(self, call: Call) -> None:
        """The transport noticed that a client is gone: cancel its call."""
        task = self.calls.get(call)
        if task is not None:
            task.cancel()

    def run(self, work: Coroutine[Any, Any, object], name: str) -> "asyncio.Task[object]":
        """Do something as an operator's call would."""
        task = self.loop.create_task(work, name=name)
        self._operators.append(task)
        return task

    async def _run(self) -> None:
        try:
            async with AsyncExitStack() as stack:
                try:
                    await self._open(stack)
                except DiskFull:
                    return  # no room to start
                await self._serve()
        except BaseException:  # noqa: BLE001 - whatever it is, it ends the daemon
            self._fail(traceback.format_exc())
        finally:
            self.serving = False

    async def _open(self, stack: AsyncExitStack) -> None:
        store, log, clock = self.store, self.log, self.clock
        stack.push_async_callback(store.close)
        stack.push_async_callback(log.close)
        self.catalogue = await Catalogue.open(store, log, wall_ms=clock.wall_ms)
        self.groups = await Groups.open(store, self.catalogue, log, clock)
        boot_id = self._chance.randbytes(BOOT_ID_BYTES)
        self.registry = Registry(
            store, self.groups, self.catalogue, log, clock, boot_id=boot_id, timing=self._timing
        )
        await stack.enter_async_context(self.registry)
        self.sessions = await Sessions.open(
            store,
            self.catalogue,
            log,
            self.groups,
            self.registry,
            clock,
            random_bytes=self._chance.randbytes,
        )
        await stack.enter_async_context(self.sessions)
        parts = (store, self.groups, self.registry)
        pauses = Pauses(self.groups, self.registry, clock)
        edits = GroupEdits(*parts, self.catalogue)
        kinds = KindTable(
            {PauseGroup: pauses, ResumeGroup: pauses, EditGroup: edits},
            {PAUSE: pauses, RESUME: pauses, "groups.edit": edits},
        )
        self.operations = await Operations.open(*parts, clock, Unheard())
        await stack.enter_async_context(self.operations.running(kinds))
        self._servicer = SessionsServicer(self.sessions)

    async def _serve(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            ends = PauseEnds(self.store, self.groups, self.operations, self.clock)
            keeping = [
                tasks.create_task(self.groups.keep(), name="keep groups"),
                tasks.create_task(ends.run(), name="ends of pauses"),
            ]
            self.serving = True
            await self._stop.wait()
            self.serving = False
            with suppress(TimeoutError):
                async with asyncio.timeout(limits.STOP_CALLS_S):
                    await self.sessions.stop()
            await self._end_calls()
            for task in keeping:
                task.cancel()

    async def _end_calls(self) -> None:
        running: list[asyncio.Task[Any]] = [
            task for task in (*self.calls.values(), *self._operators) if not task.done()
        ]
        if running:
            _, left = await asyncio.wait(running, timeout=limits.STOP_CANCEL_S)
            for task in running:
                if task in left:
                    task.cancel()
            await asyncio.wait(running)

    async def _answer(self, call: Call) -> None:
        try:
            await self._servicer.Attach(call.messages(), call)  # type: ignore[arg-type] # as much as it needs
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - as `dssd.rpc.guard` takes it
            if condition_in(error) is None:
                self._fail(traceback.format_exc())
        finally:
            if not self.loop.abandoned:
                self.calls.pop(call, None)
                call.end()

    def _fail(self, trace: str) -> None:
        if not self.loop.abandoned:
            self.failure = self.failure or trace
