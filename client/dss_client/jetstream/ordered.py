"""Ordered consumers: each message of a stream once and in order, and nothing to acknowledge.

Such a consumer is a reading of the log that follows it, so there is nothing in the daemon that
could be lost, or be left behind: over a lost connection it goes on behind the last message.
Invariant: the stream has one stream of the log.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING

from dss_client.jetstream.message import Hold, as_messages
from dss_client.record import Batch, made
from dss_core.errors import DssError, SubscriptionOver

if TYPE_CHECKING:
    from dss_client._task_spawner import Spawn
    from dss_client.jetstream.config import ConsumerInfo
    from dss_client.jetstream.message import Msg
    from dss_client.jetstream.subscriptions import Callback, ErrorCallback
    from dss_client.reader import Reader

BATCHES_AHEAD_MAX = 4
"""That wait for the program; the daemon is read no further ahead."""


class OrderedSubscription:
    """Messages in the order of the stream."""

    def __init__(self, reader: "Reader", info: "ConsumerInfo") -> None:
        self._reader = reader
        self._info = info
        self._kind = Hold(info).kind
        self._ahead: asyncio.Queue[list[Msg] | DssError | None] = asyncio.Queue(BATCHES_AHEAD_MAX)
        self._here: deque[Msg] = deque()
        self._pump: asyncio.Task[None]
        self._served: asyncio.Task[None] | None = None
        self._over = False

    def begin(
        self, spawn: "Spawn", cb: "Callback | None", error_cb: "ErrorCallback | None"
    ) -> None:
        """Begin to read."""
        self._pump = spawn(self._read(), "ordered consumer")
        if cb is not None:
            self._served = spawn(self._serve(cb, error_cb), "callback of an ordered consumer")

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self._over

    async def consumer_info(self) -> "ConsumerInfo":
        """What it is told as; the daemon keeps nothing of it."""
        return self._info

    @property
    def messages(self) -> "AsyncGenerator[Msg, None]":
        """Messages, one by one, until the subscription ends."""
        return self._messages()

    async def _messages(self) -> "AsyncGenerator[Msg, None]":
        while (message := await self._next()) is not None:
            yield message

    async def next_msg(self, timeout: float | None = 1.0) -> "Msg":  # noqa: ASYNC109 - as JetStream has it
        """The next message.

        Raises:
            TimeoutError: none came in time.
            SubscriptionOver: it has ended.
        """
        async with asyncio.timeout(timeout):
            message = await self._next()
        if message is None:
            raise SubscriptionOver(consumer=self._info.name)
        return message

    async def _next(self) -> "Msg | None":
        while not self._here:
            if self._over and self._ahead.empty():
                return None
            match await self._ahead.get():
                case None:
                    return None
                case DssError() as error:
                    self._over = True
                    raise error
                case messages:
                    self._here.extend(messages)
        return self._here.popleft()

    async def unsubscribe(self) -> None:
        """Read no more.

        Raises:
            SubscriptionOver: it has ended already.
        """
        if self._over:
            raise SubscriptionOver(consumer=self._info.name)
        await self.leave()

    async def leave(self) -> None:
        """Read no more, and give nothing of what is here."""
        self._over = True
        self._here.clear()
        self._pump.cancel()
        while not self._ahead.empty():
            self._ahead.get_nowait()
        self._ahead.put_nowait(None)
        if self._served is not None and self._served is not asyncio.current_task():
            await asyncio.wait([self._served])

    async def _read(self) -> None:
        try:
            async with aclosing(self._reader.batches()) as batches:
                async for batch in batches:
                    await self._ahead.put(self._messages_of(batch))
        except DssError as error:
            await self._ahead.put(error)

    def _messages_of(self, batch: Batch) -> "list[Msg]":
        return list(made(self._kind, batch._source, batch._decoded.rows(as_messages)))

    async def _serve(self, cb: "Callback", error_cb: "ErrorCallback | None") -> None:
        try:
            async with aclosing(self._messages()) as messages:
                async for message in messages:
                    await cb(message)
        except Exception as error:
            if error_cb is None:
                raise
            await error_cb(error)
