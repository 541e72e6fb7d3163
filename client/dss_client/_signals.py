"""What SIGTERM and SIGINT do to a program that takes records: it ends in peace, or at once.

The first signal makes everybody who takes records take no more. A program that takes none is ended,
and so is one that still runs when its grace is over. The second signal ends the process; so does a
program that does not end at all. Invariant: a signal that the program handles or ignores is left
alone, and all signals are if this is not the main thread. A system alarm bounds the grace, as it
comes even while the main thread computes.
"""

import logging
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Self

from dss_client._stop import the_stop
from dss_client.limits import CLOSE_TIMEOUT_S

SOON_S = 0.001
"""The shortest grace: a system timer takes 0 for never."""


_LOG = logging.getLogger("dss_client")

_Handler = Callable[[int, FrameType | None], object] | signal.Handlers
_UNHANDLED: dict[signal.Signals, _Handler] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
}
_MAIN = threading.main_thread()
_OF_SIGNAL = 128
"""Shells add this to the number of a signal that ended a program."""


class Signals:
    """Listens while the block runs; `end_main` ends the program, and may be called in any
    thread."""

    def __init__(self, grace_s: float, end_main: Callable[[], None]) -> None:
        self.heard = 0
        """The number of the signal."""
        self.exit_code = 0
        """The exit code of a program that was ended."""
        self._grace_s = grace_s
        self._end_main = end_main
        self._is_late = False
        self._is_called = False
        self._process = os.getpid()
        self._handled: list[int] = []

    def __enter__(self) -> Self:
        """Begin to listen."""
        if threading.current_thread() is _MAIN:
            for number, unhandled in _UNHANDLED.items():
                if signal.getsignal(number) == unhandled:
                    signal.signal(number, self._on_signal)
                    self._handled.append(number)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Listen no more."""
        if self.heard:
            self._set_alarm(0)
            the_stop.over()
        for number in self._handled:
            if signal.getsignal(number) == self._on_signal:
                signal.signal(number, _UNHANDLED[signal.Signals(number)])

    def end_in_main_thread(self) -> None:
        """Have `end_main` called in the main thread; called from another thread."""
        self._is_called = True
        signal.pthread_kill(_MAIN.ident or 0, self.heard)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process:
            # A forked child inherited the handler; the signal is not meant for it.
            signal.signal(number, _UNHANDLED[signal.Signals(number)])
            signal.raise_signal(number)
        elif self._is_called:
            self._is_called = False
            self._end_main()
        elif self.heard:
            os._exit(_OF_SIGNAL + number)
        else:
            self.heard = number
            self._set_alarm(max(self._grace_s, SOON_S))
            if not the_stop.ask(self._grace_s, all_done=self._end_main):
                self._cut()

    def _on_alarm(self, number: int, frame: FrameType | None) -> None:
        if self._is_late:
            os._exit(_OF_SIGNAL + self.heard)
        self._is_late = True
        _LOG.warning("the grace of %g s is over: what is under way is cut short", self._grace_s)
        self._set_alarm(CLOSE_TIMEOUT_S)
        self._cut()

    def _cut(self) -> None:
        self.exit_code = _OF_SIGNAL + self.heard
        self._end_main()

    def _set_alarm(self, after_s: float) -> None:
        """Have `_on_alarm` called after a while; 0: never."""
        if signal.getsignal(signal.SIGALRM) in (signal.SIG_DFL, self._on_alarm):
            signal.signal(signal.SIGALRM, self._on_alarm if after_s else signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, after_s)
