"""Calling the daemon from a command, which is a plain function.

Invariant: a command that asks or changes something ends within its timeout; one that follows a
stream has had an answer within its timeout before it begins. gRPC and asyncio are loaded here,
when a command really talks to the daemon.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from dss_core.errors import TimedOut
from dssctl.settings import Settings

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from dss_client import Client

Answer = TypeVar("Answer")


def ask(settings: Settings, question: Callable[["Client"], Awaitable[Answer]]) -> Answer:
    """Connect, ask one thing, disconnect.

    Raises:
        TimedOut: there was no answer in time; whether a change was made is unknown.
        DssError: what the daemon answered, or that none is there.
    """
    import asyncio

    async def connected_question() -> Answer:
        async with connected(settings) as client:
            return await _in_time(settings, question(client))

    return asyncio.run(connected_question())


def connected(settings: Settings) -> "AbstractAsyncContextManager[Client]":
    """The client that the global options describe, to be entered."""
    from dss_client import connect

    return connect(endpoint=settings.endpoint)


async def require_daemon(client: "Client", settings: Settings) -> None:
    """Make sure that a daemon answers now.

    A producer or a subscription waits for one that went away; one that was never there is an
    error, and so is one that does not answer.

    Raises:
        TimedOut: it does not answer.
        Unreachable: it is not there.
    """
    await _in_time(settings, client.daemon.status())


async def _in_time(settings: Settings, call: Awaitable[Answer]) -> Answer:
    import asyncio

    try:
        async with asyncio.timeout(settings.timeout_s):
            return await call
    except TimeoutError as late:
        raise TimedOut(what="The call", seconds=f"{settings.timeout_s:g}") from late
