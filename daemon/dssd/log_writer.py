"""Writes the lines of the daemon's log to stderr, in a thread of its own.

Whoever reads the log may stand still: a stopped terminal, a pipe that nobody empties, a collector
that waits for its disk. The event loop would stand with it, and with that every client. So lines
wait here, up to a bound, and what comes beyond it is left out.

Invariant: lines are written whole and in order, and how many are missing is told where they are.
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
        self._lines: queue.Queue[str | threading.Event] = queue.Queue(LINES_WAITING_MAX)
        self._left_out = 0
        threading.Thread(target=self._run, name="log", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        """As of any handler."""
        self.write(f"{self.format(record)}\n")

    def write(self, text: str) -> None:
        """Have whole lines written, and wait for nothing; in any thread."""
        try:
            self._lines.put_nowait(text)
        except queue.Full:
            self._left_out += text.count("\n")

    def flush(self) -> None:
        """Wait until the lines before are written, if whoever reads them takes them soon."""
        written = threading.Event()
        with suppress(queue.Full):
            self._lines.put_nowait(written)
            written.wait(END_S_MAX)

    def _run(self) -> None:
        while True:
            match self._lines.get():
                case str() as text:
                    self._put(text)
                case threading.Event() as written:
                    written.set()
            if self._left_out and self._lines.empty():
                left_out, self._left_out = self._left_out, 0
                self._put(_LEFT_OUT % left_out)

    def _put(self, text: str) -> None:
        rest = memoryview(text.encode(errors="backslashreplace"))
        with suppress(OSError):  # nobody reads it any more
            while rest:
                try:
                    rest = rest[os.write(STDERR, rest) :]
                except BlockingIOError:
                    # Another program with this terminal or pipe has made writes return at once.
                    select.select((), (STDERR,), ())
