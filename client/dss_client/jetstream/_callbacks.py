"""The callbacks that a program gives to a subscription.

Invariant: whatever they raise that is an error is told, to the error callback or to the log, and
ends neither the subscription nor the client.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dss_client.jetstream.message import Msg

    Callback = Callable[[Msg], Awaitable[None]]
    ErrorCallback = Callable[[Exception], Awaitable[None]]

_LOG = logging.getLogger("dss_client")


class ErrorTeller:
    """Tells of the errors of one subscription."""

    def __init__(self, consumer: str, error_cb: "ErrorCallback | None") -> None:
        self._consumer = consumer
        self._error_cb = error_cb

    async def tell(self, error: Exception) -> None:
        """To the error callback, or to the log."""
        if self._error_cb is None:
            _LOG.warning("the subscription to %s: %s", self._consumer, error)
            return
        try:
            await self._error_cb(error)
        except Exception:  # noqa: BLE001 - the program's own, and told
            told = "the error callback of the subscription to %s failed, which was told: %s"
            _LOG.exception(told, self._consumer, error)

    async def hand_to(self, callback: "Callback", message: "Msg") -> bool:
        """Call it with a message; whether it returned without an error."""
        try:
            await callback(message)
        except Exception as error:  # noqa: BLE001 - the program's own, told to it
            await self.tell(error)
        except asyncio.CancelledError as error:
            if _is_cancelled():
                raise
            # Something that it awaited was.
            cancelled = RuntimeError("what the callback awaited was cancelled")
            cancelled.__cause__ = error
            await self.tell(cancelled)
        else:
            return True
        return False


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and bool(task.cancelling())
