"""Writes the lines of the daemon's log to stderr, in a thread of its own.

Whoever reads the log may stand still: a stopped terminal, a pipe that nobody empties, a collector
that waits for its disk. The event loop would stand with it, and with that every client. So lines
wait here, up to a bound, and what comes beyond it is left out.

Invariant: lines are written whole and in order, and how many are missing is told where they are.
Whoever logs never waits for this, not even for itself: an object that is collected while a line is
taken may log too.
"""

import logging
import os
import queue
import select
import threading
from contextlib import suppress

STDERR = 2
LINES_WAITING_MAX = 4_096
"""Some minutes of a busy daemon's log, a megabyte."""

END_S_MAX = 0.5
"""How long an end waits for the lines before it."""

_LEFT_OUT = "%d lines of the log are left out here: whoever reads it stood still\n"


class LogWriter(logging.Handler):
    """A handler of all log records; `write` takes other lines."""

    def __init__(self) -> None:
        super().__init__()
        # Of the queues only this one may be entered again in the midst of itself.
        self._lines: queue.SimpleQueue[str | threading.Event] = queue.SimpleQueue()
        self._left_out = 0
        self._leaves_out = True
        self._turn = threading.RLock()
        threading.Thread(target=self._run, name="log", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        """As of any handler."""
        self.write(f"{self.format(record)}\n")

    def write(self, text: str) -> None:
        """Have whole lines written, and wait for nothing; in any thread."""
        lines = text.count("\n")
        with self._turn:
            if self._leaves_out and self._lines.qsize() >= LINES_WAITING_MAX:
                self._left_out += lines
                return
            self._tell_left_out()
            self._lines.put(text)

    def leave_nothing_out(self) -> None:
        """The process ends: the few lines that still come say why."""
        self._leaves_out = False

    def flush(self) -> None:
        """Wait until the lines before are written, if whoever reads them takes them soon."""
        written = threading.Event()
        self._lines.put(written)
        written.wait(END_S_MAX)

    def _run(self) -> None:
        while True:
            match self._lines.get():
                case str() as text:
                    self._put(text)
                case threading.Event() as written:
                    written.set()
            with self._turn:
                if self._lines.empty():
                    self._tell_left_out()

    def _tell_left_out(self) -> None:
        left_out, self._left_out = self._left_out, 0
        if left_out:
            self._lines.put(_LEFT_OUT % left_out)

    def _put(self, text: str) -> None:
        rest = memoryview(text.encode(errors="backslashreplace"))
        with suppress(OSError):  # nobody reads it any more
            while rest:
                try:
                    rest = rest[os.write(STDERR, rest) :]
                except BlockingIOError:
                    # Another program with this terminal or pipe has made writes return at once.
                    select.select((), (STDERR,), ())
