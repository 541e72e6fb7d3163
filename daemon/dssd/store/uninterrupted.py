"""Runs a change to its end even if its caller is cancelled.

A call may be cancelled between a commit and the step that makes memory agree with it. Work that
must not stop there runs in its own task, and the cancellation reaches the caller afterwards.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from dss_core.errors import DssError

T = TypeVar("T")


async def finished(work: Coroutine[Any, Any, T], *, name: str) -> T:
    """Run the work to its end, however often the caller is cancelled; then raise the cancellation.

    Raises:
        BaseException: what the work raised. If the caller was cancelled too, the cancellation
            replaces a condition, because a caller that handles conditions would go on otherwise.
            It does not replace a programmer's error.
    """
    task = asyncio.create_task(work, name=name)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({task})
        failed = task.exception()
        if failed is not None and not isinstance(failed, DssError):
            raise failed from None
        raise
