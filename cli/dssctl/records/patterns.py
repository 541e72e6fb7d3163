"""Patterns that are looked for in payloads, and how long one may take.

A pattern that backtracks can take for ever on one record. The engine looks at signals while it
works, so an alarm ends it. Invariant: outside of `bounded` no alarm is set, and the previous
handler is restored.
"""

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from dss_core.errors import IllegalArgument, PatternTooSlow

PATTERN_S_MAX = 2.0
"""For a pattern on one batch of records, which usually takes milliseconds: it backtracks."""


class Pattern:
    """A regular expression over the text of a payload; bytes that are no text match nothing."""

    def __init__(self, text: str) -> None:
        """Compile it.

        Raises:
            IllegalArgument: it is none.
        """
        self.text = text
        try:
            self._compiled = re.compile(text)
        except (re.error, RecursionError, OverflowError) as broken:
            rule = f"it is a regular expression of Python: {broken}"
            raise IllegalArgument(argument=f"the pattern {text!r}", rule=rule) from broken

    def is_in(self, payload: bytes) -> bool:
        """Whether it is found anywhere."""
        return self._compiled.search(payload.decode("utf-8", "surrogateescape")) is not None


@contextmanager
def bounded(pattern: str) -> Iterator[None]:
    """Let what is done inside take `PATTERN_S_MAX` seconds.

    Raises:
        PatternTooSlow: it took longer.
    """
    armed = True

    def too_slow(_number: int, _frame: object) -> None:
        if armed:
            raise _TooSlowError

    before = signal.signal(signal.SIGALRM, too_slow)
    signal.setitimer(signal.ITIMER_REAL, PATTERN_S_MAX)
    try:
        yield
    except _TooSlowError:
        raise PatternTooSlow(pattern=repr(pattern), seconds=f"{PATTERN_S_MAX:g}") from None
    finally:
        armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class _TooSlowError(Exception):
    """The alarm rang; it stays inside `bounded`."""
