"""Futures that somebody waits for, answered together; one that was cancelled needs no answer."""

import asyncio
from collections.abc import Iterable

from dss_core.errors import DssError


def resolve(waiters: "Iterable[asyncio.Future[None]]") -> None:
    """Wake the waiters: their event has happened."""
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)


def fail(waiters: "Iterable[asyncio.Future[None]]", reason: DssError) -> None:
    """Fail the waiters: their event will not happen."""
    for waiter in waiters:
        if not waiter.done():
            waiter.set_exception(reason)
