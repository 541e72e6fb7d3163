"""A trial on a daemon that is struck at one of its system calls, and the daemon after it.

A trial runs once to count its points, and once for each point that is struck. Invariant: an offline
check finds no damage in what a struck daemon left, before the next one starts on it.
"""

import os
import re
import signal
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

from dss_core.errors import ExitCode
from dss_sim import strace
from support import (
    client_trial,
    errand_trial,
    growth_trial,
    lane_trial,
    syscall_faults,
    trial_verdict,
)
from support.daemon_process import running, short_directory
from support.syscall_faults import CALLS, MISSED, Point

SMALL = (str(Path(__file__).parents[1] / "scenarios" / "programs" / "small_daemon.py"),)
SYNCS = ("fdatasync", "fsync")
IGNORED = ("fdatasync", ".")
"""SQLite ignores the result of syncing a directory; what that would have made durable, the daemon
has synced before."""
SYNCED = ("pwritev2",)
WRITTEN = re.compile(r", (\d+), 0$")
"""The position and flags of a pwritev2."""

J = TypeVar("J")


async def _nothing_more(_: Path) -> str:
    """Judge nothing more: the offline check is enough."""
    return ""


async def _nobody(_: object, __: Path) -> str:
    """Judge nothing more: its output is enough."""
    return ""


@dataclass(frozen=True, slots=True)
class Trial(Generic[J]):
    """Work on a daemon, and what must hold after it."""

    journal: Callable[[], AbstractAsyncContextManager[J]]
    """The work, with notes of what was tried and what was answered."""
    perform: Callable[[J, str, Awaitable[object]], Awaitable[bool]]
    check: Callable[[str, J], Awaitable[None]]
    left: Callable[[Path], Awaitable[str]] = _nothing_more
    """What is wrong with the data directory of a daemon that ended."""
    next_life: str = "next"
    """Where the next daemon listens."""
    judge: Callable[[J, Path], Awaitable[str]] = _nobody
    """What is wrong with the data directory when that daemon ends."""

    async def points(self, calls: Sequence[str] = CALLS) -> list[Point]:
        """The points at which it can be struck, in their order."""
        with short_directory() as directory:
            output = directory / "calls"
            tracer = syscall_faults.counting(output, calls)
            async with self.journal() as journal:
                exit_code, said = await self._lived(directory, journal, tracer)
            assert exit_code == 0, said
            return syscall_faults.points_in(output, syscall_faults.data_in(directory), calls)

    async def syncs(self) -> list[Point]:
        """Those of them that are syncs."""
        return [each for each in await self.points(SYNCS) if (each.call, each.path) != IGNORED]

    async def killed_at(self, point: Point) -> str:
        """Kill a daemon at a point, and judge the next one."""
        async with self.journal() as journal:
            with short_directory() as directory:
                data = syscall_faults.data_in(directory)
                tracer = syscall_faults.injecting(
                    point, data, syscall_faults.KILL, directory / "calls"
                )
                exit_code, said = await self._lived(directory, journal, tracer)
                if exit_code != -signal.SIGKILL:
                    return MISSED if exit_code == 0 else f"exit code {exit_code}: {said}"
                return await self._judged(directory, journal)

    async def failed_at(self, point: Point) -> str:
        """Let a sync fail, and judge the daemon and the next one.

        The disk then loses what the segment file had not synced.
        """
        async with self.journal() as journal:
            with short_directory() as directory:
                data, output = syscall_faults.data_in(directory), directory / "calls"
                fault = syscall_faults.FAIL
                tracer = syscall_faults.injecting(point, data, fault, output, also=SYNCED)
                exit_code, said = await self._lived(directory, journal, tracer)
                if exit_code == 0 and not _was_struck(output):
                    return MISSED
                if exit_code != ExitCode.IO_ERROR or "DSS5007" not in said or "Traceback" in said:
                    return f"exit code {exit_code}: {said}"
                if point.path.endswith(".seg"):
                    _forget_unsynced(data / point.path, output)
                return await self._judged(directory, journal)

    async def refused_at(self, point: Point) -> str:
        """Let a write find no room, once: all work is done nevertheless, and the next daemon is
        sound."""
        async with self.journal() as journal:
            with short_directory() as directory:
                data, output = syscall_faults.data_in(directory), directory / "calls"
                tracer = syscall_faults.injecting(point, data, syscall_faults.NO_ROOM, output)
                exit_code, said = await self._lived(directory, journal, tracer)
                if exit_code != 0:
                    return f"exit code {exit_code}: {said}"
                return await self._judged(directory, journal) if _was_struck(output) else MISSED

    async def _lived(self, directory: Path, journal: J, tracer: Sequence[str]) -> tuple[int, str]:
        work = partial(self.perform, journal)
        return await syscall_faults.lived(directory, work, tracer=tracer, program=SMALL)

    async def _judged(self, directory: Path, journal: J) -> str:
        data = syscall_faults.data_in(directory)
        if damage := syscall_faults.damage_in(data):
            return f"damage: {damage}"
        if wrong_rows := await self.left(data):
            return wrong_rows
        async with running(*syscall_faults.serving(directory, self.next_life)) as daemon:
            try:
                await self.check(daemon.endpoint, journal)
            except TimeoutError as late:
                late.add_note(daemon.said)
                raise
            except AssertionError as wrong:
                return f"{type(wrong).__name__}: {wrong}\n{daemon.said}"
            if await daemon.stop() != 0:
                return daemon.said
        return await self.judge(journal, data)


def _was_struck(output: Path) -> bool:
    return "INJECTED" in output.read_text(errors="replace")


def _forget_unsynced(path: Path, output: Path) -> None:
    """Cut a segment file to what was durable before the sync that failed."""
    size = synced = 0
    for call in strace.calls_of(output.read_text(errors="replace").splitlines()):
        written = WRITTEN.search(call.arguments)
        if written is not None:
            size = int(written[1]) + int(call.result)
        elif call.result == "0":
            synced = size
    os.truncate(path, synced)


RECORDS = Trial(
    lambda: nullcontext(client_trial.Journal()), client_trial.perform, trial_verdict.check
)
"""Sixty operations of every kind."""
LANES = Trial(lambda: nullcontext(lane_trial.Lanes()), lane_trial.perform, lane_trial.check)
"""Records that fail, in a group with queues."""
ERRANDS = Trial(
    lambda: nullcontext(errand_trial.Errands()),
    errand_trial.perform,
    errand_trial.check,
    judge=errand_trial.judged,
)
"""Operators handle failed records."""
GROWTH = Trial(
    growth_trial.growing,
    growth_trial.perform,
    growth_trial.check,
    left=growth_trial.left,
    next_life=syscall_faults.FIRST_LIFE,
)
"""A topic grows under programs that survive the daemon."""
