"""A daemon as a process of its own, as its users run it.

Invariant: whoever starts one ends it, by `stop`, `kill` or the end of the `running` block. A
process whose start failed has ended. A traced one ends with this process, whatever that dies of.
Its stderr is kept for the failure report.
"""

import asyncio
import ctypes
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Self

from support.started_program import StartedProgram, started

START_S_MAX = 60.0
STOP_S_MAX = 60.0
LISTENING = " listening on "

_KERNEL = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1


class DaemonEnded(Exception):
    """The daemon ended before it listened."""

    def __init__(self, exit_code: int, said: str) -> None:
        super().__init__(f"dssd ended with {exit_code}: {said}")
        self.exit_code = exit_code
        self.said = said


class DaemonProcess:
    """A ``dssd serve`` that listens. Built by `start`."""

    def __init__(self, process: asyncio.subprocess.Process | StartedProgram) -> None:
        self.process = process
        self.endpoints: tuple[str, ...] = ()
        self._lines: list[str] = []
        self._listens = asyncio.Event()
        self._collector = asyncio.create_task(self._collect(), name="stderr of dssd")

    @classmethod
    async def start(
        cls,
        *arguments: str,
        program: Sequence[str] = ("-m", "dssd"),
        tracer: Sequence[str] = (),
        from_nothing: bool = False,
    ) -> Self:
        """Run ``dssd serve`` with these arguments until it says that it listens.

        Another program than the real one may stand in, to be broken in a certain way. A tracer is a
        command in front of it, which must leave it the child of this process. With a tracer, or if
        the program changes things that others import, a fresh ``python`` is started.

        Raises:
            DaemonEnded: it ended instead.
        """
        command = (*program, "serve", *arguments)
        if tracer or from_nothing:
            daemon = cls(await _executed(*tracer, sys.executable, *command))
        else:
            daemon = cls(await started(*command, pipes=["stderr"]))
        try:
            async with asyncio.timeout(START_S_MAX):
                await daemon._listens.wait()
        except BaseException:
            # Nobody else has it yet.
            await daemon.kill()
            raise
        if not daemon.endpoints:
            raise DaemonEnded(await daemon.wait(), daemon.said)
        return daemon

    @property
    def endpoint(self) -> str:
        """The first address that it listens on, as gRPC names it."""
        return self.endpoints[0]

    @property
    def said(self) -> str:
        """All that it wrote to stderr so far."""
        return "".join(self._lines)

    async def stop(self) -> int:
        """SIGTERM, and the exit code that follows."""
        if self.process.returncode is None:
            self.process.terminate()
        async with asyncio.timeout(STOP_S_MAX):
            return await self.wait()

    async def kill(self) -> None:
        """SIGKILL."""
        if self.process.returncode is None:
            self.process.kill()
        await self.wait()

    async def wait(self) -> int:
        """The exit code, once it has ended."""
        # If somebody stops waiting, that does not end the reading of its output.
        await asyncio.shield(self._collector)
        return await self.process.wait()

    async def _collect(self) -> None:
        assert self.process.stderr is not None
        async for raw in self.process.stderr:
            line = raw.decode(errors="replace")
            self._lines.append(line)
            if line.startswith("dssd ") and LISTENING in line:
                self.endpoints = tuple(line.strip().split(LISTENING)[1].split(", "))
                self._listens.set()
        self._listens.set()


async def _executed(*command: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *command,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        preexec_fn=_end_with_its_parent,
    )


def _end_with_its_parent() -> None:
    """Let it end with this process: a run of tests that hangs is killed, and ends no block."""
    _KERNEL.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


@asynccontextmanager
async def running(
    *arguments: str, program: Sequence[str] = ("-m", "dssd"), from_nothing: bool = False
) -> AsyncIterator[DaemonProcess]:
    """A daemon that is killed when the block ends, unless it has ended before."""
    daemon = await DaemonProcess.start(*arguments, program=program, from_nothing=from_nothing)
    try:
        yield daemon
    finally:
        await daemon.kill()


@contextmanager
def short_directory() -> Iterator[Path]:
    """A temporary directory whose path is short enough for a unix socket, unlike those of
    pytest."""
    with tempfile.TemporaryDirectory(prefix="dss-") as directory:
        yield Path(directory)
