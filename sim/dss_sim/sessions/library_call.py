"""The gRPC that the client library sees: a channel whose calls of Attach go through the world.

Besides the messages it tracks what the session of the client id may have, and surely has.

Invariant: a process that is gone, or that was cut off, gets and sends nothing; the library gets
messages in the order in which the daemon sent them.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import TYPE_CHECKING
from unittest.mock import patch

from dss_api.v1 import sessions_pb2
from dss_client._connection import ConnectionLostError
from dss_client._outages import Outages
from dss_core.errors import GroupDestroyed, NotSubscribed, OutcomeUnknown, Unreachable
from dss_sim.sessions.connection import Link
from dss_sim.sessions.consumer import Up
from dss_sim.sessions.timeline import Timeline

if TYPE_CHECKING:
    from dss_sim.sessions.process import Process

Down = sessions_pb2.SessionDown
CANCELLED_US = 1_000
"""How long until the daemon's transport knows that a call was cancelled."""


class LibraryLink(Link):
    """One call of a process that uses the client library."""

    def __init__(self, process: "Process", opening: sessions_pb2.Open, call: "LibraryCall") -> None:
        program = process.program
        name = f"{program.name}.{len(program.connections) + 1}"
        local = program.plan.local
        super().__init__(program, program.world, name, opening, local=local)
        self._process = process
        self._library = call
        self._program = program
        self.lent: dict[int, tuple[int, str]] = {}
        """Grants that it may hand out from, each with its subscription and stream."""

    def says(self, message: Up) -> None:
        """The library sends a message."""
        match message.WhichOneof("item"):
            case "subscribe":
                self._program.asked.add(message.subscribe.subscription)
            case "unsubscribe":
                number = message.unsubscribe.subscription
                self.unsubscribed[number] = number in self._program.sure
                self._program.sure.discard(number)
                self.world.unsubscribes(self.session_id, number)
        self.say(message)

    def take(self, message: Down) -> None:
        """Take a message of the daemon."""
        if self.left_us is None:
            self._note(message)
        self._library.heard(message)

    def _note(self, message: Down) -> None:
        match message.WhichOneof("item"):
            case "opened":
                self.answered = True
                self.session_id = message.opened.session_id
                self.world.opened(self, message.opened)
                self._program.opened(self, message.opened)
            case "subscribed":
                number = message.subscribed.subscription
                self.groups[number] = self.world.group_of(self.session_id, number)
                if number not in self.unsubscribed:
                    self._program.sure.add(number)
            case "unsubscribed":
                self._gone(message.unsubscribed.subscription)
            case "granted":
                granted = message.granted
                self._process.links[granted.grant] = self
                self.lent[granted.grant] = granted.subscription, granted.stream
            case "revoke":
                self.lent.pop(message.revoke.grant, None)
            case "revoked":
                self.lent.pop(message.revoked.grant, None)
            case "error":
                self._refused(message.error)

    def _refused(self, item: sessions_pb2.SessionError) -> None:
        self.world.refused(self, item)
        self.lent.pop(item.grant, None)
        if item.subscription and not item.grant:
            self.unsubscribed.pop(item.subscription, None)
            if item.error.code in (NotSubscribed.code, GroupDestroyed.code):
                self._gone(item.subscription)
        elif item.final:
            self.answered = True
            self.told = item.error.code

    def _gone(self, number: int) -> None:
        self._program.asked.discard(number)
        self._program.sure.discard(number)
        self.groups.pop(number, None)
        self.unsubscribed.pop(number, None)

    def ended(self) -> None:
        """The daemon ended the call, or is gone."""
        self._library.lose()
        if self.left_us is None:
            self.world.closed(self)


class LibraryCall:
    """The call object of grpcio, as far as the library uses it."""

    def __init__(self, process: "Process") -> None:
        self.link: LibraryLink | None = None
        self._process = process
        self._inbox: deque[Down] = deque()
        self._is_over = False
        self._reader: asyncio.Future[None] | None = None
        self._heard_us = process.program.world.timeline.now_us

    def cancel(self) -> None:
        """End the call at once."""
        self._is_over = True
        if self.link is not None:
            self._process.program.world.cut(self.link, CANCELLED_US)

    async def done_writing(self) -> None:
        """Half-close the call."""
        if self.link is not None and self.link.is_live:
            self.link.leave(politely=True)

    async def read(self) -> Down:
        """The next item.

        Raises:
            ConnectionLostError: there will be no more.
        """
        while not self._inbox:
            if self._is_over:
                raise ConnectionLostError(OutcomeUnknown())
            self._reader = self._process.loop.create_future()
            await self._reader
        self._heard_us = self._process.program.world.timeline.now_us
        return self._inbox.popleft()

    async def write(self, item: Up) -> None:
        """Send an item; the first one connects.

        Raises:
            ConnectionLostError: nobody is there, or not any more.
        """
        if self.link is None:
            self.link = self._connected(item.open)
        if self._is_over:
            raise ConnectionLostError(OutcomeUnknown())
        if item.WhichOneof("item") == "ping":
            self._process.pinged(self._heard_us)
        self.link.says(item)

    def _connected(self, opening: sessions_pb2.Open) -> LibraryLink:
        program = self._process.program
        link = LibraryLink(self._process, opening, self)
        link.call = program.world.connected(link)
        if link.call is None:
            raise ConnectionLostError(Unreachable(endpoint="the world"))
        program.connections.append(link)
        return link

    def heard(self, message: Down) -> None:
        """Take a message of the daemon."""
        self._inbox.append(message)
        self._wake()

    def lose(self) -> None:
        """The connection is lost."""
        self._is_over = True
        self._wake()

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)


class LibraryChannel:
    """The channel, as far as the library uses it: `dss_client._connection.Connection`."""

    text = "the world"
    """The name of its endpoint."""

    def __init__(self, process: "Process") -> None:
        self._process = process
        self.outages = Outages(self.text, patient=True)
        self.calls: list[LibraryCall] = []

    @property
    def endpoint(self) -> "LibraryChannel":
        """Its endpoint."""
        return self

    @property
    def sessions(self) -> "LibraryChannel":
        """The stub of the service."""
        return self

    def Attach(self) -> LibraryCall:
        """A new call."""
        call = LibraryCall(self._process)
        self.calls.append(call)
        return call

    async def read(self, call: LibraryCall) -> Down:
        """The next item of a call.

        Raises:
            ConnectionLostError: there will be no more.
        """
        item = await call.read()
        self.outages.heard()
        return item

    async def write(self, call: LibraryCall, item: Up) -> None:
        """Send an item over a call.

        Raises:
            ConnectionLostError: nobody is there, or not any more.
        """
        await call.write(item)


@contextmanager
def library_surroundings(seed: int, timeline: Timeline) -> Iterator[None]:
    """The library's surroundings: a clock, chance, a log, memory."""

    def monotonic() -> float:
        return timeline.now_us / 1e6

    with (
        patch("dss_client.subscription.monotonic", monotonic),
        patch("dss_client._attachment.monotonic", monotonic),
        patch("dss_client._pings.monotonic", monotonic),
        patch("dss_client.session.monotonic", monotonic),
        patch("dss_client._doubt.monotonic", monotonic),
        patch("dss_client._keyed_runner.monotonic", monotonic),
        patch("dss_client._loop_watch.monotonic", monotonic),
        patch("dss_client._outages.monotonic", monotonic),
        patch("dss_client._backoff.random", Random(f"{seed}/backoff")),
        patch("dss_client.session.keep_heap", lambda: None),
        patch.object(logging.getLogger("dss_client"), "disabled", True),
    ):
        yield
