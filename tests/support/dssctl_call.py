"""One command line of ``dssctl``: as a process, or as a call of its main function in this one.

A call costs a twentieth of a process, so the output and exit codes of commands are tested by calls.
Both have standard streams that are no terminals, and an environment in which nothing changes the
output or lets a command wait. Invariant: a call leaves this process's arguments, streams and
environment as they were.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from tempfile import TemporaryFile
from typing import IO, Any, Protocol
from unittest.mock import patch

from dssctl.main import main
from support.started_program import ProgramProcess

PROCESS_S_MAX = 60.0
PIPE_BYTES_MAX = 1 << 16
"""How much a pipe of Linux takes before anybody reads it."""
CHANGES_OUTPUT = ("NO_COLOR", "FORCE_COLOR", "TYPER_USE_RICH")

Completed = subprocess.CompletedProcess[bytes]


class Daemon(Protocol):
    """A daemon that command lines are for."""

    endpoint: str

    def dssctl(self, *arguments: str, stdin: bytes = b"") -> Completed:
        """Call the tool."""


def ok(done: Completed) -> bytes:
    """What a command printed that succeeded."""
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def item(done: Completed) -> dict[str, Any]:
    """The one thing in its document."""
    return dict(json.loads(ok(done))["item"])


def items(done: Completed) -> list[dict[str, Any]]:
    """Those in its document."""
    return list(json.loads(ok(done))["items"])


def environment(**changes: str) -> dict[str, str]:
    """This process's environment without what would change the output, or wait."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in CHANGES_OUTPUT and not name.startswith("DSSCTL_")
    }
    fixed = {"DSSCTL_CONNECT_WAIT": "0", "DSSCTL_CONFIG": os.devnull}
    return inherited | fixed | changes


def run_dssctl(*arguments: str, stdin: bytes = b"") -> Completed:
    """Run one command line as a process."""
    return run_forked(environment(), *arguments, stdin=stdin)


def run_forked(variables: Mapping[str, str], *arguments: str, stdin: bytes = b"") -> Completed:
    """Run one command line as a process with this environment."""
    command, pipe = ["-m", "dssctl", *arguments], subprocess.PIPE
    with ProgramProcess(command, stdin=pipe, stdout=pipe, stderr=pipe, env=variables) as process:
        try:
            out, err = process.communicate(stdin, PROCESS_S_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    return Completed(command, process.returncode, out, err)


def call_dssctl(
    *arguments: str, stdin: bytes = b"", environ: Mapping[str, str] | None = None
) -> Completed:
    """Run one command line in this process, outside of any event loop."""
    changed = environment(**(environ or {}))
    with ExitStack() as stack:
        out = stack.enter_context(TemporaryFile())
        err = stack.enter_context(TemporaryFile())
        given = stack.enter_context(_piped(stdin))
        stack.enter_context(patch.dict(os.environ, changed, clear=True))
        stack.enter_context(patch.object(sys, "argv", ["dssctl", *arguments]))
        with _streams(given, out, err):
            exit_code = main()
        return Completed(arguments, exit_code, _all_of(out), _all_of(err))


@contextmanager
def _piped(content: bytes) -> Iterator[IO[bytes]]:
    """The reading end of a pipe that contains this and then ends."""
    assert len(content) <= PIPE_BYTES_MAX, "nobody reads yet"
    reading, writing = os.pipe()
    with open(reading, "rb") as end:  # noqa: PTH123 - no path
        os.write(writing, content)
        os.close(writing)
        yield end


@contextmanager
def _streams(given: IO[bytes], out: IO[bytes], err: IO[bytes]) -> Iterator[None]:
    """Standard streams over these files, flushed at the end as at that of a process."""
    streams = {
        "stdin": _text(given, "r"),
        "stdout": _text(out, "w"),
        "stderr": _text(err, "w", errors="backslashreplace"),
    }
    with ExitStack() as stack:
        for name, stream in streams.items():
            stack.enter_context(patch.object(sys, name, stack.enter_context(stream)))
        yield


def _text(file: IO[bytes], mode: str, errors: str = "strict") -> IO[str]:
    return open(file.fileno(), mode, encoding="utf-8", errors=errors, closefd=False)


def _all_of(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()
