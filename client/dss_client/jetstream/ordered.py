"""Ordered consumers: each message of a stream once and in order, and nothing to acknowledge.

Such a consumer is a `Reader` that follows the log. The daemon keeps no state of it that could be
lost or left behind; after a lost connection it goes on behind the last message. Invariant: the
stream is a single stream of the log, so one count and one offset say exactly what was handed out.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

from dss_client.jetstream._callbacks import ErrorTeller
from dss_client.jetstream.config import ConsumerConfig, DeliverPolicy, SequenceInfo
from dss_client.jetstream.message import Hold, as_messages
from dss_client.record import Batch, made
from dss_core.errors import DssError, SubscriptionOver

if TYPE_CHECKING:
    from dss_client._task_spawner import Spawn
    from dss_client.jetstream._callbacks import Callback, ErrorCallback
    from dss_client.jetstream._consumers import Consumers
    from dss_client.jetstream.config import ConsumerInfo
    from dss_client.jetstream.message import Msg
    from dss_client.reader import Reader

BATCHES_AHEAD_MAX = 4
"""Batches that wait for the program; the client reads no further ahead."""


class OrderedSubscription:
    """Messages in the order of the stream."""

    def __init__(
        self, reader: "Reader", info: "ConsumerInfo", consumers: "Consumers", *, takes_all: bool
    ) -> None:
        self._reader = reader
        self._info = info
        self._consumers = consumers
        self._takes_all = takes_all
        """Whether it takes every message of the stream."""
        self._came = 0
        self._handed = 0
        self._seq = _seq_before(info.config)
        """Sequence of the last message that was handed out, or the one before the first; None:
        unknown."""
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
            errors = ErrorTeller(self._info.name or "an ordered consumer", error_cb)
            self._served = spawn(self._serve(cb, errors), "callback of an ordered consumer")

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self._over

    @property
    def pending_msgs(self) -> int:
        """How many messages are here and not handed out yet."""
        return self._came - self._handed

    async def consumer_info(self) -> "ConsumerInfo":
        """Its configuration and state, composed here: the daemon keeps nothing of it.

        ``num_pending`` is known if it takes every message of the stream, or none is left.
        """
        state = (await self._consumers.stream_info(self._info.stream_name)).state
        seq, last = self._seq, state.last_seq
        pending = None
        if seq is not None and last is not None:
            behind = max(last - max(seq, (state.first_seq or 1) - 1), 0)
            pending = behind if self._takes_all or not behind else None
        place = SequenceInfo(self._handed, seq)
        return replace(
            self._info,
            ack_floor=place, delivered=place, num_ack_pending=0, num_redelivered=0,
            num_pending=pending,
        )  # fmt: skip

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
        message = self._here.popleft()
        self._handed += 1
        self._seq = message._at + 1
        return message

    async def unsubscribe(self) -> None:
        """Read no more.

        Raises:
            SubscriptionOver: it has ended already.
        """
        if self._over:
            raise SubscriptionOver(consumer=self._info.name)
        await self.leave()

    async def drain(self) -> None:
        """Read no more; hand out what is here, then end.

        Raises:
            SubscriptionOver: it has ended already.
        """
        if self._over:
            raise SubscriptionOver(consumer=self._info.name)
        self._over = True
        self._pump.cancel()
        if self._ahead.empty():
            self._ahead.put_nowait(None)
        if self._served is not None and self._served is not asyncio.current_task():
            await asyncio.wait([self._served])

    async def leave(self) -> None:
        """Read no more, and give nothing of what is here."""
        self._over = True
        self._here.clear()
        self._came = self._handed
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
                    messages = self._messages_of(batch)
                    await self._ahead.put(messages)
                    self._came += len(messages)
        except DssError as error:
            await self._ahead.put(error)

    def _messages_of(self, batch: Batch) -> "list[Msg]":
        return list(made(self._kind, batch._source, batch._decoded.rows(as_messages)))

    async def _serve(self, cb: "Callback", errors: ErrorTeller) -> None:
        try:
            async with aclosing(self._messages()) as messages:
                async for message in messages:
                    await errors.hand_to(cb, message)
        except DssError as error:
            await errors.tell(error)


def _seq_before(config: ConsumerConfig) -> int | None:
    """The sequence before the first message, if the configuration tells it."""
    match config.deliver_policy:
        case DeliverPolicy.ALL | None:
            return 0
        case DeliverPolicy.BY_START_SEQUENCE:
            return max((config.opt_start_seq or 1) - 1, 0)
        case _:
            return None
