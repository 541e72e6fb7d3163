"""Watching a process's system calls through strace, in the order in which they happened, and
making some of them fail.

Invariant: nothing is traced before `attached` enters its block or after it has left it. An event in
one line had happened before the next line was written: the kernel holds a thread until strace has
written what it did.
"""

import asyncio
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

PATIENCE_S = 60.0
LINE_BYTES_MAX = 16 << 20
STRING_BYTES_MAX = 64 << 10
"""How much of a buffer is shown: more than any answer of the daemon."""

_WHOLE = re.compile(r"^(\d+) +(\w+)\((.*)\) += (.+)$")
_BEGUN = re.compile(r"^(\d+) +(\w+)\((.*) <unfinished \.\.\.>$")
_RESUMED = re.compile(r"^(\d+) +<\.\.\. (\w+) resumed>(.*)\) += (.+)$")


def why_not() -> str:
    """Why nothing can be traced here; empty if it can."""
    path = shutil.which("strace")
    if path is None:
        return "strace is not installed"
    tried = subprocess.run([path, "-o", "/dev/null", "true"], check=False, capture_output=True)
    return "strace may not trace here" if tried.returncode else ""


@dataclass(frozen=True, slots=True)
class SystemCall:
    """One call. It began at one line and ended at the same or a later one."""

    thread: str
    name: str
    arguments: str
    result: str
    began: int
    ended: int


class Trace:
    """The output of strace so far."""

    def __init__(self, strace: asyncio.subprocess.Process) -> None:
        self.lines: list[str] = []
        self._strace = strace
        self._grown = asyncio.Event()

    def abandon(self) -> None:
        """End strace at once, even while it holds a thread; a killed process needs that to end."""
        self._strace.kill()

    async def until(self, text: str) -> None:
        """Wait for a line with this text."""
        async with asyncio.timeout(PATIENCE_S):
            while not any(text in line for line in self.lines):
                self._grown.clear()
                await self._grown.wait()

    def calls(self) -> Iterator[SystemCall]:
        """The calls that ended, in the order of their ends."""
        return calls_of(self.lines)

    async def follow(self, output: asyncio.StreamReader) -> None:
        """Read strace's output until it ends."""
        async for raw in output:
            self.lines.append(raw.decode().rstrip("\n"))
            self._grown.set()


def calls_of(lines: Iterable[str]) -> Iterator[SystemCall]:
    """The calls that ended in these lines of ``strace -f``, in the order of their ends."""
    begun: dict[tuple[str, str], tuple[int, str]] = {}
    for at, line in enumerate(lines):
        if whole := _WHOLE.match(line):
            thread, name, arguments, result = whole.groups()
            yield SystemCall(thread, name, arguments, result, at, at)
        elif start := _BEGUN.match(line):
            thread, name, arguments = start.groups()
            begun[thread, name] = (at, arguments)
        elif end := _RESUMED.match(line):
            thread, name, rest, result = end.groups()
            # A call may have begun before the process was traced.
            began, arguments = begun.pop((thread, name), (0, ""))
            yield SystemCall(thread, name, arguments + rest, result, began, at)


@asynccontextmanager
async def attached(
    pid: int, *calls: str, inject: str = "", path: Path | None = None
) -> AsyncIterator[Trace]:
    """Trace the calls of a process and of all its threads while the block runs.

    ``inject`` is strace's expression for injected faults, for example `fdatasync:error=EIO`.
    With a ``path`` only calls on that file are traced and struck.
    The process may end meanwhile.
    """
    faults = ("-e", f"inject={inject}") if inject else ()
    only = ("-P", str(path)) if path is not None else ()
    process = await asyncio.create_subprocess_exec(
        *("strace", "-f", "-s", str(STRING_BYTES_MAX), "-e", f"trace={','.join(calls)}"),
        *(*faults, *only, "-o", "/dev/stdout", "-p", str(pid)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=LINE_BYTES_MAX,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    trace = Trace(process)
    following = asyncio.create_task(trace.follow(process.stdout), name="strace")
    try:
        async with asyncio.timeout(PATIENCE_S):
            said = (await process.stderr.readline()).decode()
        assert " attached" in said, said
        yield trace
    finally:
        if process.returncode is None:
            # strace detaches from the process, which runs on.
            process.terminate()
        await process.wait()
        await following
