"""Programs of ours as processes that start at once: forked from a `ready_interpreter`.

Imports take half a second of each start, and a run of the tests starts hundreds of programs. A
process that is started here has them done already. A test of the start itself, or one whose process
is traced, runs ``python`` instead.

Invariant: a program is a process of its own and a child of this one, as if started by `exec`: with
its own streams, exit code and signals, and with this process's environment and directory. If its
start is given up, it is ended.
"""

import asyncio
import atexit
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

READY = Path(__file__).with_name("ready_interpreter.py")
PR_SET_CHILD_SUBREAPER = 36
STDERR = 2
LINE_BYTES_MAX = 1 << 16

# Where these are among the arguments with which `subprocess` starts a process.
ENVIRONMENT, ENDS = 5, slice(9, 15)
NO_END = -1

Pipe = Literal["stdin", "stdout", "stderr"]


class ReadyInterpreter:
    """The ready interpreter of this process; it starts with the first program."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: socket.socket | None = None

    def start(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        streams: Sequence[int],
        *,
        terminal: bool = False,
        directory: str | None = None,
    ) -> int:
        """Run ``python ARGUMENTS`` with these standard streams; returns the process id.

        ``terminal``: the streams are a terminal, which is to be its controlling one. Without a
        ``directory`` it runs in that of this process.
        """
        start = {
            "arguments": arguments,
            "environment": dict(environment),
            "directory": directory or str(Path.cwd()),
            "terminal": terminal,
        }
        with self._lock:
            asked = self._asked = self._asked or _ready()
            # Only now do grandchildren become children of this process; before, nobody would wait
            # for them.
            _adopt(True)
            try:
                socket.send_fds(asked, [json.dumps(start).encode()], streams)
                pid = int.from_bytes(asked.recv(8))
            finally:
                _adopt(False)
        assert pid, "the interpreter ended"
        return pid


INTERPRETER = ReadyInterpreter()


def _ready() -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        command = [sys.executable, str(READY), str(theirs.fileno())]
        process = subprocess.Popen(command, pass_fds=[theirs.fileno()])

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


def _adopt(adopt: bool) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, int(adopt), 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no subreaper")


class ProgramProcess(subprocess.Popen[bytes]):
    """`subprocess.Popen` of a program that is forked; its arguments are those of ``python``."""

    def _execute_child(self, args: Sequence[str], *others: Any) -> None:  # noqa: ANN401
        """Called by `subprocess` to start the process, once it has made its pipes."""
        env, ends = others[ENVIRONMENT], others[ENDS]
        theirs = (ends[0], ends[3], ends[5])
        streams = [stream if end == NO_END else end for stream, end in enumerate(theirs)]
        self.pid = INTERPRETER.start(args, os.environ if env is None else env, streams)
        self._child_created = True
        self._close_pipe_fds(*ends)  # type: ignore[attr-defined]


class StartedProgram:
    """A running process; the streams that were asked for are pipes."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.stdin: asyncio.WriteTransport | None = None
        self.stdout: asyncio.StreamReader | None = None
        self.stderr: asyncio.StreamReader | None = None
        self._ended = asyncio.Event()
        self._handle = os.pidfd_open(pid)
        asyncio.get_running_loop().add_reader(self._handle, self._reap)

    async def connect(self, ends: Mapping[Pipe, int], line_bytes_max: int) -> None:
        """Connect to our ends of its pipes."""
        loop = asyncio.get_running_loop()
        for name, descriptor in ends.items():
            if name == "stdin":
                end = os.fdopen(descriptor, "wb", 0)
                self.stdin, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, end)
                continue
            reader = asyncio.StreamReader(line_bytes_max)
            listens = partial(asyncio.StreamReaderProtocol, reader)
            await loop.connect_read_pipe(listens, os.fdopen(descriptor, "rb", 0))
            setattr(self, name, reader)

    async def communicate(self) -> tuple[bytes, bytes]:
        """The rest of its stdout and stderr, once it has ended."""
        pipes = (self.stdout, self.stderr)
        out, err = [b"" if pipe is None else await pipe.read() for pipe in pipes]
        await self.wait()
        return out, err

    async def wait(self) -> int:
        """The exit code once it has ended; if a signal ended it, its number, negative."""
        await self._ended.wait()
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def _reap(self) -> None:
        asyncio.get_running_loop().remove_reader(self._handle)
        os.close(self._handle)
        _, status = os.waitpid(self.pid, 0)
        self.returncode = os.waitstatus_to_exitcode(status)
        if self.stdin is not None:
            self.stdin.close()
        self._ended.set()


async def started(
    *arguments: str,
    pipes: Sequence[Pipe],
    line_bytes_max: int = LINE_BYTES_MAX,
    environment: Mapping[str, str] | None = None,
) -> StartedProgram:
    """``python ARGUMENTS`` with pipes to the named streams.

    Of the other streams, stdin and stdout are empty, and stderr is that of this process.
    """
    nothing = os.open(os.devnull, os.O_RDWR)
    its = {"stdin": nothing, "stdout": nothing, "stderr": STDERR}
    ours: dict[Pipe, int] = {}
    for name in pipes:
        reads, writes = os.pipe()
        its[name], ours[name] = (reads, writes) if name == "stdin" else (writes, reads)
    variables = os.environ if environment is None else environment
    start = asyncio.to_thread(INTERPRETER.start, arguments, variables, tuple(its.values()))
    starting = asyncio.create_task(start, name="start a program")
    try:
        pid = await asyncio.shield(starting)
    except asyncio.CancelledError:
        await _end(starting, ours.values())
        raise
    finally:
        for descriptor in {nothing, *its.values()} - {STDERR}:
            os.close(descriptor)
    program = StartedProgram(pid)
    await program.connect(ours, line_bytes_max)
    return program


async def _end(starting: asyncio.Task[int], ends: Iterable[int]) -> None:
    """End a process whose start nobody waits for any more: nobody else would end it."""
    program = StartedProgram(await starting)
    program.kill()
    await program.wait()
    for descriptor in ends:
        os.close(descriptor)
