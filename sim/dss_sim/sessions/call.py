"""One call of Attach, between a client and the daemon: two pipes that keep the order.

For the servicer it is the messages of a call and its gRPC context: `write` and `peer` behave as
grpcio's do, also after the connection was lost. Messages arrive a little later, in both directions;
a client that reads nothing blocks `write` after a while.

Invariant: nothing overtakes in a pipe; after the client is cut off it gets and sends nothing.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from functools import partial
from random import Random

from google.protobuf.message import Message

from dss_api.v1 import sessions_pb2
from dss_sim.sessions.timeline import Act, Timeline, VirtualLoop

LATENCY_US = (50, 2_000)
UNREAD_MAX = 16
"""How many unread messages a client may have before `write` waits."""


class _Pipe:
    """Delivers messages later, in order."""

    def __init__(self, timeline: Timeline, chance: Random) -> None:
        self._timeline = timeline
        self._chance = chance
        self._last_us = 0

    def hand_over(self, act: Act) -> None:
        now_us = self._timeline.now_us
        self._last_us = max(self._last_us, now_us + self._chance.randint(*LATENCY_US))
        self._timeline.after(self._last_us - now_us, act)


class Call:
    """``take`` is called with each message for the client, ``ended`` when there will be no more."""

    def __init__(
        self,
        name: str,
        peer: str,
        timeline: Timeline,
        loop: VirtualLoop,
        chance: Random,
        *,
        take: Callable[[sessions_pb2.SessionDown], None],
        ended: Act,
    ) -> None:
        self.name = name
        self.owner: object = None
        """Who calls."""
        self.is_cut = False
        """The client is gone; the daemon may not know yet."""
        self.is_noticed = False
        """The daemon's transport knows that the client is gone."""
        self.is_over = False
        """The daemon has ended the call, or is gone."""
        self.over_us: int | None = None
        self.frozen = False
        """The client reads nothing."""
        self._delayed = False
        """The daemon's messages, its end of the call included, take long to arrive."""
        self._end_delayed = False
        self._timeline = timeline
        self._peer = peer
        self._loop = loop
        self._take = take
        self._ended = ended
        self._up = _Pipe(timeline, chance)
        self._down = _Pipe(timeline, chance)
        self._arrived: deque[Message | None] = deque()
        self._unread: deque[sessions_pb2.SessionDown] = deque()
        self._in_flight = 0
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None

    # The client's side

    def up(self, message: sessions_pb2.SessionUp) -> None:
        """Send a message."""
        if not self.is_cut and not self.is_over:
            self._up.hand_over(lambda: self._arrive(message))

    def finish(self) -> None:
        """Half-close: no more messages will be sent."""
        self._up.hand_over(lambda: self._arrive(None))

    def cut(self) -> None:
        """Let the client vanish; the daemon may not know yet."""
        self.is_cut = True
        self._unread.clear()

    def freeze(self) -> None:
        """Read nothing for a while."""
        self.frozen = True

    def delay(self) -> None:
        """Receive nothing until `thaw`; the client does not know."""
        self.frozen = self._delayed = True

    def thaw(self) -> None:
        """Deliver what came meanwhile, and continue."""
        self.frozen = self._delayed = False
        while self._unread and not self.is_cut:
            self._take(self._unread.popleft())
        self._let_write()
        if self._end_delayed:
            self._tell_end()

    # The transport's side

    def notice(self) -> None:
        """Let the daemon's transport learn that the client is gone."""
        self.is_cut = self.is_noticed = True
        self._arrive(None)
        self._let_write()

    def lost(self) -> None:
        """Let the daemon vanish."""
        self.is_over = True
        self._delayed = False
        self._down.hand_over(self._tell_end)

    def end(self) -> None:
        """The daemon ends the call."""
        self.is_over = True
        self.over_us = self._timeline.now_us
        self._down.hand_over(self._tell_end)

    # The servicer's side

    def peer(self) -> str:
        """The transport and the address of the client."""
        return self._peer

    def invocation_metadata(self) -> tuple[()]:
        """The client's metadata: none."""
        return ()

    async def messages(self) -> AsyncGenerator[Message, None]:
        """The messages of the client, until there will be no more."""
        while True:
            while not self._arrived:
                self._reader = self._loop.create_future()
                await self._reader
            message = self._arrived.popleft()
            if message is None:
                return
            yield message

    async def write(self, message: sessions_pb2.SessionDown | bytes) -> None:
        """Send a message, or its bytes on the wire.

        Raises:
            asyncio.InvalidStateError: the client is gone, and the transport knows.
        """
        while not self.is_noticed and self._in_flight + len(self._unread) >= UNREAD_MAX:
            self._writer = self._loop.create_future()
            await self._writer
        if self.is_noticed:
            raise asyncio.InvalidStateError
        item = (
            sessions_pb2.SessionDown.FromString(message) if isinstance(message, bytes) else message
        )
        self._in_flight += 1
        self._down.hand_over(partial(self._deliver, item))
        await asyncio.sleep(0)

    def _arrive(self, message: Message | None) -> None:
        self._arrived.append(message)
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def _deliver(self, message: sessions_pb2.SessionDown) -> None:
        if self.is_cut:
            return  # it takes up room until the transport notices
        self._in_flight -= 1
        if self.frozen:
            self._unread.append(message)
            return
        self._take(message)
        self._let_write()

    def _let_write(self) -> None:
        if self._writer is not None and not self._writer.done():
            self._writer.set_result(None)

    def _tell_end(self) -> None:
        self._end_delayed = self._delayed
        if not self.is_cut and not self._delayed:
            self.is_cut = True
            self._ended()
