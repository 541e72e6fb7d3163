"""A command of ``dssctl`` run in this process: as the program runs it, but it starts at once.

Nothing of a terminal is seen this way, and no signal comes: for these a test starts the program.
"""

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass

from dssctl.invocation import run


@dataclass(frozen=True, slots=True)
class Done:
    """What a command left behind."""

    returncode: int
    stdout: bytes
    stderr: bytes


@dataclass(frozen=True, slots=True)
class CommandHere:
    """Runs commands against one daemon."""

    endpoint: str

    def dssctl(self, *arguments: str, stdin: bytes = b"") -> Done:
        """Run one command; it has no terminal."""
        out, err = io.BytesIO(), io.BytesIO()
        with (
            redirect_stdout(io.TextIOWrapper(out, "utf-8", write_through=True)),
            redirect_stderr(io.TextIOWrapper(err, "utf-8", write_through=True)),
            _standard_input(stdin),
        ):
            code = run(["--endpoint", self.endpoint, *arguments])
            sys.stdout.flush()
            sys.stderr.flush()
            return Done(code, out.getvalue(), err.getvalue())


@contextmanager
def _standard_input(content: bytes) -> Iterator[None]:
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(content), "utf-8")
    try:
        yield
    finally:
        sys.stdin = before
