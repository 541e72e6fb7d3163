"""Processes of the bench: a daemon on a fresh directory, and programs that print what they find.

Invariant: every process that was started is ended, whatever happens. Tasks that live as long as a
process read its output as it comes: an unread pipe blocks its writer, and asyncio does not notice
the end of a process whose output it has stopped reading. Every wait has a timeout, whose error says
what was waited for.
"""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

PROGRAMS = Path(__file__).parent / "programs"
LIBRARIES = (PROGRAMS.parent, PROGRAMS.parents[1] / "tests")
"""Where programs find what they share, and the hand-written HTTP/2 of the tests."""

READY = b"ready"
"""In the line with which a program says that it has begun."""
LISTENING = b"listening"
"""In that of the daemon."""
START_SECONDS_MAX = 60.0
END_SECONDS_MAX = 20.0
PROGRAM_SECONDS_MAX = 180.0
SAID_LINES_MAX = 20
"""Kept of what a process writes to stderr, for the report of a failure."""


class BenchError(Exception):
    """A measurement could not be made."""


@contextlib.asynccontextmanager
async def within(seconds: float, what: str) -> AsyncIterator[None]:
    """Bound what the block waits for.

    Raises:
        BenchError: it took longer.
    """
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as late:
        raise BenchError(f"waited {seconds:g} s for {what}") from late


class Process:
    """A process and the tasks that read what it prints. Built by `start`."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, ready_mark: bytes) -> None:
        self.name = name
        self.last_line = b""
        """Of its output."""
        self._process = process
        self._ready_mark = ready_mark
        self._is_ready = False
        self._ready_or_over = asyncio.Event()
        self._said: deque[str] = deque(maxlen=SAID_LINES_MAX)

    @classmethod
    async def start(
        cls,
        tasks: asyncio.TaskGroup,
        name: str,
        command: Sequence[str],
        *,
        ready_mark: bytes = READY,
        heard: Callable[[bytes], None] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Self:
        """Start it; ``heard`` is given each line of its output as it comes."""
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env=env
        )
        running = cls(name, process, ready_mark)

        def take(line: bytes) -> None:
            running.last_line = line
            if heard is not None:
                heard(line)

        tasks.create_task(running._read(process.stdout, take), name=f"stdout of {name}")
        tasks.create_task(running._read(process.stderr, running._keep), name=f"stderr of {name}")
        return running

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self._process.returncode is None

    def send_signal(self, signal_: signal.Signals) -> None:
        """Send a signal, unless it has ended."""
        if self._process.returncode is None:
            self._process.send_signal(signal_)

    async def ready(self) -> None:
        """Wait until it has said that it has begun.

        Raises:
            BenchError: it did not.
        """
        async with within(START_SECONDS_MAX, f"{self.name} to be ready"):
            await self._ready_or_over.wait()
        if not self._is_ready:
            raise BenchError(f"{self.name} was over before it was ready")

    async def ended(self, seconds: float = END_SECONDS_MAX) -> int:
        """Its exit code, once it has ended."""
        async with within(seconds, f"{self.name} to end"):
            return await self._process.wait()

    @contextlib.contextmanager
    def blamed(self) -> Iterator[None]:
        """Add what it said to a failure of the block."""
        try:
            yield
        except (BenchError, BaseExceptionGroup) as failure:
            failure.add_note(f"{self.name} said: {''.join(self._said) or 'nothing'}")
            raise

    async def _read(self, pipe: asyncio.StreamReader | None, take: Callable[[bytes], None]) -> None:
        assert pipe is not None
        async for line in pipe:
            if not self._is_ready and self._ready_mark in line:
                self._is_ready = True
                self._ready_or_over.set()
            take(line)
        self._ready_or_over.set()

    def _keep(self, line: bytes) -> None:
        self._said.append(line.decode(errors="replace"))


@contextlib.asynccontextmanager
async def started_program(
    name: str, *arguments: str, heard: Callable[[bytes], None] | None = None
) -> AsyncIterator[Process]:
    """A program that runs beside the block and is ended with it."""
    command = (sys.executable, str(PROGRAMS / f"{name}.py"), *arguments)
    # Before what the caller has: a checkout that is not installed is measured by its own path.
    paths = [*map(str, LIBRARIES), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    async with asyncio.TaskGroup() as tasks:
        program = await Process.start(tasks, name, command, heard=heard, env=env)
        try:
            with program.blamed():
                yield program
        finally:
            program.send_signal(signal.SIGKILL)
            await program.ended()


async def run_program(
    name: str, *arguments: str, seconds_max: float = PROGRAM_SECONDS_MAX
) -> dict[str, Any]:
    """Run a program to its end; returns the JSON object that it printed last.

    Raises:
        BenchError: it failed, or took too long.
    """
    async with started_program(name, *arguments) as program:
        if code := await program.ended(seconds_max):
            raise BenchError(f"{name} ended with {code}")
        result: dict[str, Any] = json.loads(program.last_line)
        return result


class Daemon:
    """A daemon on one directory, in one life after the other. Built by `running_daemon`."""

    def __init__(
        self,
        directory: Path,
        tasks: asyncio.TaskGroup,
        options: Sequence[str],
        program: Sequence[str],
    ) -> None:
        self.directory = directory
        self._options = options
        self._program = program
        self._tasks = tasks
        self._lives: list[Process] = []

    @property
    def endpoint(self) -> str:
        """Where it listens."""
        return f"unix:{self.directory}/d.sock"

    async def start(self) -> None:
        """Begin a life; it listens when this returns."""
        command = (
            *(sys.executable, *self._program, "serve"),
            *("--data-dir", str(self.directory), "--listen", self.endpoint, *self._options),
        )
        life = await Process.start(self._tasks, "dssd", command, ready_mark=LISTENING)
        self._lives.append(life)
        with life.blamed():
            await life.ready()

    async def end(self, signal_: signal.Signals) -> None:
        """End its life by a signal, if it has one."""
        for life in self._lives:
            life.send_signal(signal_)
            await life.ended()


@contextlib.asynccontextmanager
async def running_daemon(
    *options: str, program: Sequence[str] = ("-m", "dssd")
) -> AsyncIterator[Daemon]:
    """A daemon on a fresh directory, which goes when the block ends; a program may stand in."""
    directory = Path(tempfile.mkdtemp(prefix="dss-bench-"))
    try:
        async with asyncio.TaskGroup() as tasks:
            daemon = Daemon(directory, tasks, options, program)
            try:
                await daemon.start()
                yield daemon
            finally:
                await daemon.end(signal.SIGTERM)
    finally:
        shutil.rmtree(directory)
