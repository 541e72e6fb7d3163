"""What becomes of the daemon's log where nobody reads it."""

import fcntl
import gc
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dssd import log_writer
from dssd.log_writer import STDERR, LogWriter

PIPE_BYTES = 4_096
PATIENCE_S = 30.0


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


def read_of(end: int, last: bytes) -> list[str]:
    """The lines that a pipe gives, up to one with these bytes."""
    said = b""
    while last not in said:
        said += os.read(end, 1 << 16)
    return said.decode().splitlines()


def filled(log: LogWriter) -> None:
    """More lines than the pipe and the writer hold."""
    for number in range(50):
        log.write(f"{number} {'x' * PIPE_BYTES}\n")


def test_lines_are_said_to_be_missing_before_those_that_came_after_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_writer, "LINES_WAITING_MAX", 4)
    with unread_stderr() as end:
        log = LogWriter()
        filled(log)
        while log._lines.qsize() >= 4:
            os.read(end, PIPE_BYTES)
        log.write("after the gap\n")
        said = read_of(end, b"after the gap")
    assert "lines of the log are left out here" in said[-2]
    assert said[-1] == "after the gap"


def test_what_ends_the_daemon_is_written_though_more_lines_wait_than_may(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_writer, "LINES_WAITING_MAX", 4)
    with unread_stderr() as end:
        log = LogWriter()
        filled(log)
        log.leave_nothing_out()
        log.write("the store is damaged\n")
        said: list[str] = []
        reader = threading.Thread(target=lambda: said.extend(read_of(end, b"damaged")))
        reader.start()
        log.flush()
        reader.join(log_writer.END_S_MAX)
    assert said[-1] == "the store is damaged"


class Collected:
    """Logs as it is collected, as a task does whose error nobody has seen."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        logging.getLogger(__name__).error("collected")


def log_while_objects_are_collected(log: logging.Logger) -> None:
    """Lines, with a collection at ever other places in the midst of them."""
    for number in range(3_000):
        gc.set_threshold(1 + number % 131, 2, 2)
        Collected()
        log.error("line")


def test_an_object_that_logs_as_it_is_collected_in_the_midst_of_a_line_holds_up_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_writer, "LINES_WAITING_MAX", 8)
    log, thresholds = logging.getLogger(__name__), gc.get_threshold()
    monkeypatch.setattr(log, "propagate", False)
    with unread_stderr():
        handler = LogWriter()
        log.addHandler(handler)
        lines = threading.Thread(target=log_while_objects_are_collected, args=[log], daemon=True)
        try:
            lines.start()
            lines.join(PATIENCE_S)
            assert not lines.is_alive()
        finally:
            gc.set_threshold(*thresholds)
            gc.collect()
            log.removeHandler(handler)
