"""What becomes of the daemon's log where nobody reads it."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dssd import log_writer
from dssd.log_writer import STDERR, LogWriter

PIPE_BYTES = 4_096


@contextmanager
def unread_stderr() -> Iterator[int]:
    """A small pipe that nobody reads, in place of stderr; its other end."""
    kept = os.dup(STDERR)
    end, stderr = os.pipe()
    fcntl.fcntl(stderr, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    os.dup2(stderr, STDERR)
    os.close(stderr)
    try:
        yield end
    finally:
        os.dup2(kept, STDERR)
        os.close(kept)
        os.close(end)


@pytest.mark.parametrize("blocking", [True, False])
def test_lines_wait_for_a_reader_and_those_beyond_the_bound_are_counted(
    monkeypatch: pytest.MonkeyPatch, *, blocking: bool
) -> None:
    monkeypatch.setattr(log_writer, "LINES_WAITING_MAX", 8)
    monkeypatch.setattr(log_writer, "END_S_MAX", 0.01)
    line = "x" * (PIPE_BYTES // 2) + "\n"
    with unread_stderr() as end:
        os.set_blocking(STDERR, blocking)
        log = LogWriter()
        for number in range(100):
            log.write(f"{number} {line}")
        log.flush()
        said = b""
        while b"left out" not in said:
            said += os.read(end, 1 << 16)
    *told, last = said.decode().splitlines()
    assert [int(each.split()[0]) for each in told] == list(range(len(told)))
    assert 8 <= len(told) < 12
    assert (
        last
        == f"{100 - len(told)} lines of the log are left out here: whoever reads it stood still"
    )
