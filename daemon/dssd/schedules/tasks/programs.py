"""Other programs, started so that no code of this process runs in their place first.

gRPC and others register handlers that run at each fork; in the child of a process with many threads
they may hang or crash, and the event loop's own way of starting a process forks. Python's
`subprocess` uses vfork instead, which runs none of them. What a program is given lies in a file in
memory, so that nothing here ever writes to a pipe that nobody reads.

Invariant: when the block ends, the program and all processes of its session have ended; no caller
waits for a pipe that another process holds after the program ended. It needs Linux: descriptors of
processes, and files in memory.
"""

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT
from typing import IO

from dssd.loop_yield import LoopTurn

PROGRAM_END_S = 2.0
"""How long to wait for a killed program. The kernel ends one of our user at once; one that became
another user's cannot be killed, and must not delay a stop."""

PROGRAM_PIECE_BYTES = 1 << 16
"""Bytes of output read at once: all that a pipe holds."""


class Program:
    """One that runs. Made by `started`."""

    def __init__(self, process: "subprocess.Popen[bytes]", ends: int) -> None:
        self._process = process
        self._ends = ends
        """A descriptor that can be read once the program has ended."""
        self._loop = asyncio.get_running_loop()
        self._ended = self._loop.create_future()
        self._loop.add_reader(ends, self._note_end)

    def said(self) -> AsyncGenerator[bytes, None]:
        """What it says, in pieces."""
        return self._pieces(self._process.stdout)

    def errors(self) -> AsyncGenerator[bytes, None]:
        """What it says of errors, where that goes apart."""
        return self._pieces(self._process.stderr)

    async def code(self) -> int:
        """How it ended; below zero: by that signal. It may be asked for again."""
        await asyncio.shield(self._ended)
        self._end_rest()
        return self._process.wait()

    async def end(self) -> None:
        """End it at once, with all that it started; but not what became another user's."""
        try:
            self._end_rest()
            with suppress(TimeoutError):
                async with asyncio.timeout(PROGRAM_END_S):
                    await self.code()
        finally:
            self._loop.remove_reader(self._ends)
            os.close(self._ends)
            for pipe in (self._process.stdout, self._process.stderr):
                if pipe is not None:
                    pipe.close()

    def _end_rest(self) -> None:
        """End what is left of its session. Its number is its own until it is waited for."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):  # nothing is left, or not ours
                os.killpg(self._process.pid, signal.SIGKILL)

    def _note_end(self) -> None:
        self._loop.remove_reader(self._ends)
        self._ended.set_result(None)

    async def _pieces(self, pipe: IO[bytes] | None) -> AsyncGenerator[bytes, None]:
        """What comes through a pipe, until it is closed or the program has ended."""
        assert pipe is not None, "it is no pipe"
        os.set_blocking(pipe.fileno(), False)
        turn = LoopTurn()
        while True:
            await turn.give_way()
            try:
                piece = os.read(pipe.fileno(), PROGRAM_PIECE_BYTES)
            except BlockingIOError:
                if self._ended.done():  # all that it said was in the pipe by then
                    return
                await self._readable(pipe.fileno())
                continue
            if not piece:
                return
            yield piece

    async def _readable(self, descriptor: int) -> None:
        """Return once there is something to read, or the program has ended."""
        readable = self._loop.create_future()
        self._loop.add_reader(descriptor, _resolve, readable)
        try:
            waits = {readable, self._ended}
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._loop.remove_reader(descriptor)


@asynccontextmanager
async def started(
    arguments: Sequence[str | Path],
    *,
    given: bytes | None = None,
    env: Mapping[str, str] | None = None,
    errors_apart: bool = False,
) -> AsyncIterator[Program]:
    """A program in a session of its own, which is ended when this is left.

    Raises:
        OSError: it cannot be run.
    """
    stdin = DEVNULL if given is None else _file_of(given)
    try:
        process = subprocess.Popen(  # noqa: ASYNC220 - vfork: as long as the kernel needs to load it
            arguments,
            stdin=stdin,
            stdout=PIPE,
            stderr=PIPE if errors_apart else STDOUT,
            env=env,
            start_new_session=True,
        )
    finally:
        if stdin != DEVNULL:
            os.close(stdin)
    program = Program(process, _ends(process))
    try:
        yield program
    finally:
        await program.end()


def _file_of(content: bytes) -> int:
    """A descriptor from which the content can be read."""
    descriptor = os.memfd_create("given")
    try:
        os.write(descriptor, content)
        os.lseek(descriptor, 0, os.SEEK_SET)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _ends(process: "subprocess.Popen[bytes]") -> int:
    """A descriptor that can be read once the process has ended."""
    try:
        return os.pidfd_open(process.pid)
    except OSError:  # no descriptor is left: its end could not be observed
        process.kill()
        process.wait()
        raise


def _resolve(waiting: "asyncio.Future[None]") -> None:
    if not waiting.done():
        waiting.set_result(None)
