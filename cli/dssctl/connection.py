"""Calling the daemon from a command, which is a plain function.

Invariant: a command that asks or changes something ends within its timeout once a daemon is there;
one that follows a stream has had an answer within its timeout before it begins. A unix socket at
which nobody listens may belong to a daemon that is being started, so it is tried again for a
moment. gRPC and asyncio are loaded here, when a command really calls the daemon.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from dss_core.errors import DssError, ExitCode, TimedOut, Unreachable
from dssctl.settings import Settings

if TYPE_CHECKING:
    from dss_client import Client

SILENT_S = 3.0
"""When a person is told that the daemon has not answered yet: most calls take milliseconds."""

CONNECT_PAUSE_S = 0.05
"""The pause between two attempts at the socket; the transport has pauses of its own."""


Answer = TypeVar("Answer")


def ask(settings: Settings, question: Callable[["Client"], Awaitable[Answer]]) -> Answer:
    """Connect, ask one thing, disconnect; by the operators' socket, if there is one.

    Raises:
        TimedOut: there was no answer in time; whether a change was made is unknown.
        DssError: what the daemon answered, or that none is there.
    """
    import asyncio

    from dss_client import connect, operators_endpoint

    async def connected_question() -> Answer:
        reserve = operators_endpoint(settings.endpoint)
        if reserve is not None:
            # A daemon that was killed leaves its socket there.
            with suppress(Unreachable):
                async with (
                    connect(endpoint=reserve, patient=False) as client,
                    suggestions(settings, client),
                ):
                    return await in_time(settings, question(client))
        async with connected(settings) as client, suggestions(settings, client):
            return await _answered(settings, client, question)

    return asyncio.run(connected_question())


@asynccontextmanager
async def suggestions(settings: Settings, client: "Client") -> AsyncIterator[None]:
    """Add similar names to the error about a name that does not exist."""
    try:
        yield
    except DssError as failure:
        if failure.exit_code is ExitCode.NOT_FOUND:
            from dssctl.suggesting import suggest

            with suppress(TimedOut):
                await in_time(settings, suggest(client, failure))
        raise


@asynccontextmanager
async def connected(settings: Settings, client_id: str | None = None) -> "AsyncIterator[Client]":
    """The client that the global options describe; while it is open, Ctrl-C takes effect at
    once."""
    from dss_client import connect
    from dss_client.interrupts import heard_at_once

    with heard_at_once():
        files = settings.credentials
        async with connect(
            client_id,
            endpoint=settings.endpoint,
            patient=False,
            ca=files.ca,
            cert=files.cert,
            key=files.key,
            token_file=files.token_file,
        ) as client:
            yield client


async def require_daemon(client: "Client", settings: Settings) -> None:
    """Make sure that a daemon answers now.

    A producer or a subscription waits for a daemon that went away, but a daemon that was never
    there is an error, and so is one that does not answer.

    Raises:
        TimedOut: it does not answer.
        Unreachable: it is not there.
    """
    await _answered(settings, client, lambda client: client.daemon.status())


async def _answered(
    settings: Settings, client: "Client", question: Callable[["Client"], Awaitable[Answer]]
) -> Answer:
    """Ask, and ask again while a socket of this machine does not answer yet."""
    import asyncio

    loop = asyncio.get_running_loop()
    local = client.endpoint.startswith("unix:")
    last_at = loop.time() + (settings.connect_wait_s if local else 0)
    while True:
        try:
            return await in_time(settings, question(client))
        except Unreachable:
            # The request never left this process, so repeating it does nothing twice.
            if loop.time() >= last_at:
                raise
        await asyncio.sleep(CONNECT_PAUSE_S)


async def in_time(settings: Settings, call: Awaitable[Answer]) -> Answer:
    """Await a call within the timeout; a person is told if it takes long.

    Raises:
        TimedOut: it took longer; whether it had an effect is unknown.
    """
    import asyncio

    telling = asyncio.get_running_loop().call_later(SILENT_S, _tell_silence, settings)
    try:
        async with asyncio.timeout(settings.timeout_s):
            return await call
    except TimeoutError as error:
        from dss_client.late_daemon import late

        what = "The call"
        raise late(settings.endpoint, what=what, seconds=settings.timeout_s) from error
    finally:
        telling.cancel()


def _tell_silence(settings: Settings) -> None:
    from dss_client.late_daemon import stopped_process
    from dssctl.output import note

    process = stopped_process(settings.endpoint)
    why = f": its process {process} is stopped; kill -CONT {process}" if process else " yet"
    note(settings, f"the daemon has not answered{why}")
