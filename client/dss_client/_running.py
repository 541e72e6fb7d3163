"""Running a program's main coroutine.

Invariant: everything that the coroutine opened is closed before the process ends, unless it hangs.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from dss_client._signals import Signals
from dss_client.interrupts import heard_at_once
from dss_client.limits import GRACE_S

Result = TypeVar("Result")

INTERRUPTED = 130
"""What a shell takes for Ctrl-C."""


def run(main: Coroutine[Any, Any, Result], *, grace: float = GRACE_S) -> Result:
    """`asyncio.run`, for a program that ends in peace on SIGTERM and Ctrl-C, without a traceback.

    On the first of them every subscription takes no more: iteration ends, `Subscription.run`
    returns once its handlers have ended, and `fetch` ends the program. So the coroutine ends by
    itself, acknowledges and leaves its groups, and the process ends with 0. Where nothing is
    subscribed to, and where ``grace`` seconds are over, the coroutine is cancelled: clients,
    producers and subscriptions close, and the process ends with 128 and the signal's number. The
    second signal ends the process at once.

    Raises:
        SystemExit: it was cancelled.
    """
    ended = _Main()
    with Signals(grace, ended.end) as signals:
        try:
            return asyncio.run(ended.run(main))
        except KeyboardInterrupt:
            raise SystemExit(INTERRUPTED) from None
        except asyncio.CancelledError:
            if not signals.heard:
                raise
            raise SystemExit(signals.exit_code) from None


class _Main:
    """The main task, which may be ended before it begins, and from any thread."""

    def __init__(self) -> None:
        self._task: asyncio.Task[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended = False

    async def run(self, main: Coroutine[Any, Any, Result]) -> Result:
        self._task = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        if self._ended:
            self.end()
        with heard_at_once():
            return await main

    def end(self) -> None:
        self._ended = True
        if self._loop is not None and self._task is not None:
            self._loop.call_soon_threadsafe(self._task.cancel)
