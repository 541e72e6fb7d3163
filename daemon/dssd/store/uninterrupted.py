"""Changes that run to their end although their caller goes away.

A call may be cancelled between a commit and the step that makes memory agree with it. Work that
must not stop there runs in a task of its own, and its caller is told of the cancellation after.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from dss_core.errors import DssError

T = TypeVar("T")


async def finished(work: Coroutine[Any, Any, T], *, name: str) -> T:
    """Run the work to its end, however often it is cancelled, and only then be cancelled.

    Raises:
        BaseException: what the work raised. Where the caller was cancelled too, that comes first,
            or a caller that takes conditions would live on; but not before a programmer's error.
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
