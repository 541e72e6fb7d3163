"""The open calls: their peers, and the messages that they wait for.

gRPC delivers a message when all of it has arrived. Until then it occupies gRPC's memory, so a
client that sends half a message holds that memory. So this module tracks each wait for a message.
The first message of a call has a deadline; later ones have none, because a client may be silent.
When memory is short, waits are ended: those of the peer with the most calls first, and of these the
longest first.

Invariant: no peer has more open calls than are left free, except a minimum for each. Ending a wait
raises a condition in the call, and loses no message that has arrived.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import cached_property
from typing import Any, Self
from urllib.parse import unquote

import grpc.aio

from dss_core.errors import DssError, LoginEnded, MessageUnreadable, Overloaded, TimedOut
from dssd.access.access import Login
from dssd.events.kinds import PEER_REFUSED
from dssd.events.model import Event, Note
from dssd.fair_share import may_take_more
from dssd.rpc.connection_bounds import Peer, place_of
from dssd.rpc.limits import ARRIVAL_BYTES_MAX
from dssd.rpc.origin import Context, said_pid
from dssd.rpc.unix_peers import Process

PEER_CALLS_MIN = 8
"""Open calls that every peer may have, however few are left."""

FIRST_MESSAGE_S = 10.0
"""Deadline for the first message of a call: a bad network takes seconds."""

ARRIVAL_QUIET_S = 3.0
"""Only waits longer than this are ended: our client sends something twice as often on an idle
session."""


UNNAMED = "unix socket"
"""The peer of a call whose process is unknown, perhaps only for now."""

LOST = (asyncio.InvalidStateError, grpc.aio.InternalError, grpc.aio.UsageError)
"""What gRPC raises where the connection is lost."""


class OpenCall:
    """A call, and an iterator over its messages, in order."""

    def __init__(self, context: Context, peer: Peer, login: Login) -> None:
        self.peer = peer
        self.login = login
        self.quiet_since: float | None = None
        """When it began to wait for a message, by the loop's clock; None while it does not."""
        self.context = context
        self._limit_s: float | None = FIRST_MESSAGE_S
        self._limit: asyncio.Timeout | None = None
        self._ended: DssError | None = None
        self._allowed: asyncio.Timeout | None = None

    @cached_property
    def place(self) -> str:
        """Where it comes from, over TCP."""
        return place_of(*_address_of(self.context))

    def __aiter__(self) -> Self:
        """Itself."""
        return self

    async def __anext__(self) -> Any:  # noqa: ANN401 - the message of any method
        """The next message.

        Raises:
            StopAsyncIteration: there will be none.
            TimedOut: the first one did not come in time.
            Overloaded: memory is short, and this wait was ended.
            MessageUnreadable: it cannot be read.
        """
        self.quiet_since = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(self._limit_s) as self._limit:
                message = await self.context.read()
        except TimeoutError:
            raise self._why_ended() from None
        except LOST:
            raise StopAsyncIteration from None
        finally:
            self.quiet_since = None
        if message is grpc.aio.EOF:
            raise StopAsyncIteration
        self._limit_s = None
        return message

    async def only(self) -> Any:  # noqa: ANN401
        """The message of a call that has one.

        Raises:
            MessageUnreadable: there is none.
        """
        async for message in self:
            return message
        raise MessageUnreadable(message="its message", reason="it is missing")

    @property
    def is_ended(self) -> bool:
        """Whether its wait was ended and the call has not resumed yet."""
        return self._ended is not None

    @property
    def has_heard(self) -> bool:
        """Whether its first message came."""
        return self._limit_s is None

    def _why_ended(self) -> DssError:
        # Not stored: a raised error would keep this call alive through its traceback.
        reason, self._ended = self._ended, None
        return reason or TimedOut(what="The first message of the call", seconds=FIRST_MESSAGE_S)

    @asynccontextmanager
    async def while_allowed(self) -> AsyncIterator[None]:
        """Run the work of the call; it is cancelled when the login ends.

        Raises:
            LoginEnded: it was.
        """
        if not self.login.key:
            yield
            return
        self._allowed = allowed = asyncio.timeout(None)
        try:
            async with allowed:
                yield
        except TimeoutError:
            if not allowed.expired():
                raise
            raise LoginEnded(principal=self.login.principal) from None
        finally:
            self._allowed = None

    def disallow(self) -> None:
        """The login has ended: cancel the work of the call."""
        if self._allowed is not None and not self._allowed.expired():
            self._allowed.reschedule(asyncio.get_running_loop().time())

    def end(self, reason: DssError) -> None:
        """Wait no longer."""
        assert self._limit is not None
        self._ended = reason
        self._limit.reschedule(asyncio.get_running_loop().time())


class Calls:
    """Those of one server, which takes so many of them."""

    def __init__(
        self, calls_max: int, note: Note, process: Callable[[int], Process | None]
    ) -> None:
        self._max = calls_max
        self._note = note
        self._process = process
        self._open: dict[OpenCall, None] = {}
        self._held: Counter[Peer] = Counter()

    @property
    def held(self) -> Mapping[Peer, int]:
        """How many calls each peer has open."""
        return self._held

    @property
    def most(self) -> int:
        """How many there may be."""
        return self._max

    def open_calls(self) -> list[OpenCall]:
        """All of them."""
        return list(self._open)

    @contextmanager
    def open(self, context: Context, login: Login) -> Iterator[OpenCall]:
        """Count the call while it runs, under its principal if that has a name of its own.

        Raises:
            Overloaded: its peer has as many as are left free.
        """
        peer = login.principal.name if login.key else self.peer_of(context)
        holds = self._held[peer]
        if not may_take_more(holds, len(self._open), self._max, PEER_CALLS_MIN):
            self._note(_refused(peer, holds))
            raise Overloaded(what="The number of open calls of this peer", limit=holds)
        call = OpenCall(context, peer, login)
        self._open[call] = None
        self._held[peer] += 1
        try:
            yield call
        finally:
            del self._open[call]
            self._held[peer] -= 1
            if not self._held[peer]:
                del self._held[peer]

    def named(self) -> Mapping[str, str]:
        """The named principals with open calls, by address and port."""
        named = (call for call in self._open if call.login.key)
        return {call.place: call.login.principal.name for call in named}

    def peer_of(self, context: Context) -> Peer:
        """The peer of a call, as far as the kernel names it."""
        if not context.peer().startswith("unix:"):
            return _address_of(context)[0]
        pid = said_pid(context)
        return (None if pid is None else self._process(pid)) or UNNAMED

    def end_waits(self, count: int) -> Mapping[Peer, int]:
        """End so many long waits for messages, all of the greediest peer.

        A peer within the minimum of calls is spared while the calls of others could hold so many
        messages. Returns the peer, and the number of ended waits.
        """
        latest = asyncio.get_running_loop().time() - ARRIVAL_QUIET_S
        spares_few = count <= self._greedy_holding
        waiting = [
            (call, since)
            for call in self._open
            if (since := call.quiet_since) is not None
            and since <= latest
            and not call.is_ended
            and (self._is_greedy(call.peer) or not spares_few)
        ]
        if not waiting:
            return {}
        greediest = max((call.peer for call, _ in waiting), key=self._held.__getitem__)
        waiting = [each for each in waiting if each[0].peer == greediest]
        waiting.sort(key=lambda each: each[1])
        what = "The memory for messages on their way"
        for call, _ in waiting[:count]:
            call.end(Overloaded(what=what, limit=f"{ARRIVAL_BYTES_MAX >> 20} MiB"))
        return Counter(call.peer for call, _ in waiting[:count])

    @property
    def _greedy_holding(self) -> int:
        """How many calls of peers above the minimum may hold part of a message: those that wait for
        one, or whose wait was ended and that have not resumed yet."""
        return sum(
            self._is_greedy(call.peer) and (call.quiet_since is not None or call.is_ended)
            for call in self._open
        )

    def _is_greedy(self, peer: Peer) -> bool:
        return self._held[peer] > PEER_CALLS_MIN


def _address_of(context: Context) -> tuple[str, str]:
    """Address and port of a caller over TCP."""
    address, _, port = context.peer().partition(":")[2].rpartition(":")
    return unquote(address).strip("[]"), port


def _refused(peer: Peer, holds: int) -> Event:
    sentence = f"It had {holds} calls open, as many as were left free, and got no more."
    return Event(PEER_REFUSED, str(peer), sentence, {"calls": str(holds)})
