"""Running a program's main coroutine.

Invariant: everything that the coroutine opened is closed before the process ends.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from dss_client.interrupts import heard_at_once

Result = TypeVar("Result")

INTERRUPTED = 130
"""What a shell takes for Ctrl-C."""


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """`asyncio.run`, for a program: Ctrl-C ends it with exit code 130, and prints no traceback.

    The coroutine is cancelled first, so that clients, producers and subscriptions close in peace.

    Raises:
        SystemExit: it was interrupted.
    """
    try:
        return asyncio.run(_interruptible(main))
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None


async def _interruptible(main: Coroutine[Any, Any, Result]) -> Result:
    with heard_at_once():
        return await main
