"""A stop that this process was asked for: everybody who takes records takes no more.

There is one for each process, as for signals; it knows neither signals nor takers. Invariant: once
it was asked for, nothing more is handed out, not even by subscriptions opened later.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import NoReturn, Protocol

CLOSE_LATE_S = 0.5
"""How long closing waits for the daemon once the grace of a stop is over: a living daemon answers
within it."""


class Taker(Protocol):
    """A taker of records, which ends by itself once it takes no more."""

    def end_taking(self) -> None:
        """Take no more; called in the loop that it was opened in."""


class Stop:
    """The stop of the process."""

    def __init__(self) -> None:
        self._takers: dict[Taker, asyncio.AbstractEventLoop] = {}
        self._done: set[Taker] = set()
        """Takers that were asked for records after they had ended."""
        self._ends_s: float | None = None
        self._all_done: Callable[[], None] = _nothing

    @property
    def is_asked_for(self) -> bool:
        """Whether a stop was asked for."""
        return self._ends_s is not None

    def is_of(self, error: BaseException | None) -> bool:
        """Whether a block is left because the program is to end, and not because of an error."""
        return self.is_asked_for and isinstance(error, (asyncio.CancelledError, SystemExit))

    def left_s(self, usual_s: float) -> float:
        """How long a close may wait now that usually waits for ``usual_s``."""
        if self._ends_s is None:
            return usual_s
        return max(CLOSE_LATE_S, min(usual_s, self._ends_s - monotonic()))

    def ask(self, grace_s: float, *, all_done: Callable[[], None]) -> bool:
        """Make every taker end; returns whether there is any.

        Any thread may call this. `all_done` is called when no taker has anything left to do, and
        only the program itself could end.
        """
        self._ends_s = monotonic() + grace_s
        self._all_done = all_done
        takers = list(self._takers.items())
        for taker, loop in takers:
            with suppress(RuntimeError):  # its loop has ended
                loop.call_soon_threadsafe(taker.end_taking)
        return bool(takers)

    def over(self) -> None:
        """The program has ended."""
        self._ends_s = None
        self._done.clear()

    def opened(self, taker: Taker) -> None:
        """A taker begins, in this loop."""
        self._takers[taker] = asyncio.get_running_loop()
        if self.is_asked_for:
            taker.end_taking()

    def closed(self, taker: Taker) -> None:
        """It was left."""
        self._takers.pop(taker, None)
        self._done.discard(taker)
        if self._takers:
            self._look()

    async def wait_for_end(self, taker: Taker) -> NoReturn:
        """A program that asks an ended taker for records has finished its own, and ends here."""
        self._done.add(taker)
        self._look()
        await asyncio.get_running_loop().create_future()
        raise AssertionError("nobody sets it")

    def _look(self) -> None:
        if self._done.issuperset(self._takers):
            all_done, self._all_done = self._all_done, _nothing
            all_done()


def _nothing() -> None:
    pass


the_stop = Stop()
"""The stop of this process."""
