"""The output of a run, as far as it is kept.

Invariant: the first and the last lines are kept, within bounds of lines and bytes, and the lines
left out between them are counted. A line has no line breaks.
"""

from collections import deque

RUN_OUTPUT_BYTES_MAX = 4_096
"""Bytes of output that are kept of a run: its first and last lines, as many as fit."""

RUN_OUTPUT_LINES_MAX = 200
"""Lines that a run holds while it goes on: some 20 KB."""

OUTPUT_LINE_BYTES_MAX = 400
"""A longer line is cut: one line must not use up the whole output."""


_HALF_LINES = RUN_OUTPUT_LINES_MAX // 2
_HALF_BYTES = RUN_OUTPUT_BYTES_MAX // 2


class RunOutput:
    """Lines, as they come."""

    def __init__(self) -> None:
        self._first: list[str] = []
        self._first_bytes = 0
        self._last: deque[str] = deque()
        self._last_bytes = 0
        self._left_out = 0
        self.standing = ""
        """Progress of the run, as it reports it."""

    def now(self, line: str, /) -> None:
        """Take a progress line; the next one replaces it."""
        self.standing = _one_line(line)

    def __call__(self, line: str, /) -> None:
        """Take a line."""
        text = _one_line(line)
        size_bytes = len(text.encode()) + 1
        fits = self._first_bytes + size_bytes <= _HALF_BYTES and len(self._first) < _HALF_LINES
        if fits and not self._last:
            self._first.append(text)
            self._first_bytes += size_bytes
            return
        self._last.append(text)
        self._last_bytes += size_bytes
        while self._last_bytes > _HALF_BYTES or len(self._last) > _HALF_LINES:
            self._last_bytes -= len(self._last.popleft().encode()) + 1
            self._left_out += 1

    @property
    def lines(self) -> list[str]:
        """What is kept."""
        between = [f"… {self._left_out} lines are left out"] if self._left_out else []
        return [*self._first, *between, *self._last]


def _one_line(line: str) -> str:
    text = " ".join(line.split()).encode(errors="replace")
    return text[:OUTPUT_LINE_BYTES_MAX].decode(errors="ignore")
