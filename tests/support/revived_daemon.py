"""A daemon that dies and comes back, with the same data directory and address in all its lives.

Invariant: at most one life at a time, and none is left when the block ends.
"""

import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from support.daemon_process import DaemonProcess, short_directory

REAL = ("-m", "dssd")


class RevivedDaemon:
    """The daemon of a test. Built by `revived`."""

    def __init__(self, directory: Path, program: Sequence[str], *, from_nothing: bool) -> None:
        self.endpoint = f"unix:{directory / 'd.sock'}"
        self.data = directory / "data"
        self.process: DaemonProcess
        self._arguments = ("--data-dir", str(self.data), "--listen", self.endpoint)
        self._program = program
        self._from_nothing = from_nothing

    async def start(self) -> None:
        """Begin a life; the daemon listens when this returns."""
        self.process = await DaemonProcess.start(
            *self._arguments, program=self._program, from_nothing=self._from_nothing
        )

    async def kill(self) -> None:
        """SIGKILL."""
        await self.process.kill()

    async def revive(self) -> None:
        """SIGKILL it, and begin the next life."""
        await self.kill()
        await self.start()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """SIGSTOP, and SIGCONT at the end."""
        self.process.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.process.send_signal(signal.SIGCONT)

    def resident_bytes(self) -> int:
        """Its present memory, as the kernel counts it."""
        status = Path(f"/proc/{self.process.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) << 10


@asynccontextmanager
async def revived(
    *, program: Sequence[str] = REAL, from_nothing: bool = False
) -> AsyncIterator[RevivedDaemon]:
    """A daemon that listens, in a directory of its own; its present life ends with the block.

    Another program than the real one may stand in, to be broken in a certain way.
    """
    with short_directory() as directory:
        daemon = RevivedDaemon(directory, program, from_nothing=from_nothing)
        await daemon.start()
        try:
            yield daemon
        finally:
            await daemon.kill()
