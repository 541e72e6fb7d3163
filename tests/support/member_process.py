"""A member of a group as a process of its own, which a test may kill, freeze and command.

It runs a program that reports on stdout what happens to it, one JSON object a line with its kind
under ``event`` and its time under ``at_ns``, and takes commands on stdin. Invariant: whoever starts
one ends it; its whole output is kept unchanged.
"""

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.started_program import StartedProgram, started

PATIENCE_S = 60.0
"""How long a test waits for something; far longer than it takes."""

LINE_BYTES_MAX = 1 << 20


@dataclass(frozen=True, slots=True)
class Handed:
    """A record that the member's user was handed."""

    stream: str
    offset: int
    payload: str
    """The beginning of its payload."""
    redelivered: bool
    attempt: int
    grant_epoch: int
    at_ns: int
    """When the member took it, on the monotonic clock of the machine."""

    @property
    def place(self) -> tuple[str, int]:
        """The record's identity."""
        return self.stream, self.offset


class MemberProcess:
    """A running member. Built by `member`."""

    def __init__(self, process: StartedProgram) -> None:
        self.process = process
        self.lines: list[dict[str, Any]] = []
        """All its events."""
        self.records: list[Handed] = []
        self.streams: set[str] = set()
        """The grants that it has now."""
        self.granted: list[str] = []
        """Every stream that was ever lent to it, in order."""
        self.revoked: list[str] = []
        self._heard = asyncio.Condition()
        self._listener = asyncio.create_task(self._listen(), name="member's stdout")

    async def until(self, reached: Callable[[], object], within_s: float = PATIENCE_S) -> None:
        """Wait until a condition holds; it is checked whenever the member reports something.

        Raises:
            TimeoutError: it did not hold in time.
        """
        async with asyncio.timeout(within_s), self._heard:
            await self._heard.wait_for(lambda: bool(reached()))

    async def holds(self, streams: int) -> None:
        """Wait until it holds this many streams."""
        await self.until(lambda: len(self.streams) == streams)

    async def told(self, event: str, within_s: float = PATIENCE_S) -> dict[str, Any]:
        """Wait for the first event of the kind."""
        await self.until(lambda: self._first(event) is not None, within_s)
        found = self._first(event)
        assert found is not None
        return found

    def tell(self, line: str) -> None:
        """Send it a command; a frozen member gets it once it runs."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())

    def freeze(self) -> None:
        """SIGSTOP."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT."""
        self.process.send_signal(signal.SIGCONT)

    async def kill(self) -> None:
        """SIGKILL, which ends a frozen process too; everything that it had reported is read
        first."""
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()
        await self._listener

    async def leave(self) -> int:
        """Let it drain and leave; returns its exit code."""
        self.tell("leave")
        return await self.ended()

    async def ended(self) -> int:
        """Wait until it has ended and its output is read; returns its exit code.

        Raises:
            TimeoutError: it still runs.
        """
        async with asyncio.timeout(PATIENCE_S):
            # If somebody stops waiting, that does not end the reading of its output.
            await asyncio.shield(self._listener)
            return await self.process.wait()

    def _first(self, event: str) -> dict[str, Any] | None:
        return next((line for line in self.lines if line["event"] == event), None)

    async def _listen(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            self._take(json.loads(line))
            async with self._heard:
                self._heard.notify_all()

    def _take(self, line: dict[str, Any]) -> None:
        self.lines.append(line)
        match line:
            case {"event": "record", **facts}:
                self.records.append(Handed(**facts))
            case {"event": "granted", "stream": stream}:
                self.streams.add(stream)
                self.granted.append(stream)
            case {"event": "revoked", "stream": stream}:
                self.streams.discard(stream)
                self.revoked.append(stream)


@asynccontextmanager
async def member(program: Path, *arguments: str) -> AsyncIterator[MemberProcess]:
    """A member that is killed when the block ends, unless it has ended before."""
    process = await started(
        str(program), *arguments, pipes=["stdin", "stdout"], line_bytes_max=LINE_BYTES_MAX
    )
    running = MemberProcess(process)
    try:
        yield running
    finally:
        await running.kill()


async def until_together(
    members: Sequence[MemberProcess], reached: Callable[[], object], within_s: float = PATIENCE_S
) -> None:
    """Wait until a condition holds; it is checked whenever any of the members reports something.

    Raises:
        TimeoutError: it did not hold in time.
    """
    waits = [
        asyncio.create_task(each.until(reached, within_s), name="until together")
        for each in members
    ]
    try:
        done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for first in done:
            await first
    finally:
        for wait in waits:
            wait.cancel()
        await asyncio.wait(waits)
