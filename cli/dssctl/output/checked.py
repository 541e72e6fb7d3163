"""Standard output whose failures are conditions: a full disk is told with its code.

Invariant: every write and flush passes through here, whoever makes it. A closed pipe stays a
`BrokenPipeError`, for it means that the reader has enough.
"""

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any, TextIO, cast

from dss_core.errors import OutputUnwritable


@contextmanager
def checked_output(out: TextIO) -> Iterator[None]:
    """Standard output is this file, checked."""
    with redirect_stdout(cast("TextIO", _Checked(out))):
        yield


def give_up(out: TextIO) -> None:
    """Discard the buffer: writing it would fail again when the interpreter flushes."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())


class _Checked:
    """A text file, and what its writes raise."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def write(self, text: str) -> int:
        """Write text.

        Raises:
            OutputUnwritable: the system refuses it.
            BrokenPipeError: nobody reads any more.
        """
        with _named_failures():
            return self._out.write(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts; raises as `write` does."""
        with _named_failures():
            self._out.writelines(lines)

    def flush(self) -> None:
        """Hand everything to the system; raises as `write` does."""
        with _named_failures():
            self._out.flush()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 -- whatever the file has
        """Everything else is the file's own."""
        return getattr(self._out, name)


@contextmanager
def _named_failures() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as failed:
        reason = os.strerror(failed.errno or errno.EIO)
        raise OutputUnwritable(reason=reason) from failed
