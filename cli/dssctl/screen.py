"""A terminal that shows the newest look, and nothing else.

Invariant: what does not fit the terminal is counted in its last line, and nothing scrolls.
"""

import io
import shutil
import sys
from collections.abc import Sequence

from dssctl.output import Instant
from dssctl.settings import Settings

WATCH_SCREEN_MARGIN = 2
"""Lines of a terminal that a watched list leaves: its heading, and where the cursor is."""


_HOME, _CLEAR, _REST_OF_LINE, _REST_OF_SCREEN = "\x1b[H", "\x1b[2J", "\x1b[K", "\x1b[J"


class Screen:
    """Drawn again at each look."""

    def __init__(self, settings: Settings, interval_s: float) -> None:
        self._settings = settings
        self._interval_s = interval_s
        self._drawn = False

    def draw(self, lines: Sequence[str], told: str = "") -> None:
        """Draw over what was there."""
        lines = [self._heading(told), *lines]
        room = shutil.get_terminal_size().lines - WATCH_SCREEN_MARGIN
        if len(lines) > room:
            lines = [*lines[: room - 1], f"... {len(lines) - room + 1} more lines"]
        body = "".join(f"{line}{_REST_OF_LINE}\n" for line in lines)
        begin = _HOME if self._drawn else _CLEAR + _HOME
        sys.stdout.write(f"{begin}{body}{_REST_OF_SCREEN}")
        sys.stdout.flush()
        self._drawn = True

    def _heading(self, told: str) -> str:
        at = Instant(self._settings.clock_us() // 1_000_000 * 1_000_000).rfc3339()
        context = self._settings.context
        where = f"  context {context.name}" if context else ""
        said = f"  {told}" if told else ""
        return f"{at}  every {self._interval_s:g} s{said}{where}  Ctrl-C ends"


class Drawn(io.StringIO):
    """Text on its way to a terminal."""

    def isatty(self) -> bool:
        """Lines are fitted to its width, and coloured as there."""
        return True
