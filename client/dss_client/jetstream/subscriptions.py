"""Subscriptions of the facade: pushed to, or pulled from.

Invariant: leaving deletes the consumer only where this subscription made it and nobody else uses
it. When the client ends, its subscriptions leave and delete nothing.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from time import monotonic
from typing import TYPE_CHECKING

from dss_client.jetstream._callbacks import ErrorTeller
from dss_client.jetstream.config import ConsumerInfo
from dss_core.errors import (
    ConsumerNotActive,
    DssError,
    GroupInUse,
    JetStreamMisuse,
    SubscriptionOver,
)

if TYPE_CHECKING:
    from dss_client._task_spawner import Spawn
    from dss_client.jetstream._callbacks import Callback, ErrorCallback
    from dss_client.jetstream._consumers import Consumers
    from dss_client.jetstream._pieces import Pieces
    from dss_client.jetstream.message import Msg

ALARM_INTERVALS = 3
"""So many intervals of heartbeats without a sign of life raise the alarm, as ADR-15 has it."""

FETCH_MISSED_INTERVALS = 2
"""A fetch with heartbeats ends after so many, as clients of JetStream have it."""

NO_WAIT_S = 0.1
"""How long a fetch with ``no_wait`` waits for messages that are on their way to this client."""


class JetStreamSubscription:
    """What push and pull have in common."""

    def __init__(
        self, consumers: "Consumers", pieces: "Pieces", info: ConsumerInfo, *, created: bool
    ) -> None:
        self._consumers = consumers
        self._pieces = pieces
        self._info = info
        self._created = created
        self._over = False

    @property
    def consumer(self) -> str:
        """The name of its consumer."""
        return self._info.name

    async def consumer_info(self) -> ConsumerInfo:
        """The consumer as it is now.

        Raises:
            ConsumerNotFound: it was deleted.
        """
        is_pull = self._info.config.is_pull
        return await self._consumers.info(self._info.stream_name, self._info.name, pull=is_pull)

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self._over

    @property
    def pending_msgs(self) -> int:
        """How many messages are here and not handed out yet."""
        return self._pieces.here

    def _refuse_where_over(self) -> None:
        if self._over:
            raise SubscriptionOver(consumer=self._info.name)

    async def unsubscribe(self) -> None:
        """Leave at once; delete the consumer if this subscription made it and nobody else uses it.

        Raises:
            SubscriptionOver: it has left already.
            DssError: the consumer could not be deleted; the subscription has ended all the same.
        """
        self._refuse_where_over()
        self._over = True
        await self._pieces.__aexit__(None, None, None)
        await self._delete_own()

    async def _delete_own(self) -> None:
        if self._created:
            with suppress(GroupInUse):  # others share it: it is theirs now
                await self._consumers.discard(self._info)

    async def drain(self) -> None:
        """Accept no more from the daemon; hand out what is here, then end."""
        self._refuse_where_over()
        self._pieces.end_behind_what_came()

    async def leave(self) -> None:
        """Leave, and delete nothing: the client ends."""
        if not self._over:
            self._over = True
            await self._pieces.__aexit__(None, None, None)

    async def _leave_behind(self) -> None:
        """Nothing more comes: delete the consumer that it made if it was drained, not if the
        program ends."""
        if not self._over:
            await self.leave()
            if self._pieces.is_drained:
                await self._delete_own()


class PushSubscription(JetStreamSubscription):
    """Messages as they come, to a callback or to whoever iterates over `messages`."""

    def __init__(
        self,
        consumers: "Consumers",
        pieces: "Pieces",
        info: ConsumerInfo,
        *,
        created: bool,
        error_cb: "ErrorCallback | None",
    ) -> None:
        super().__init__(consumers, pieces, info, created=created)
        self._errors = ErrorTeller(info.name, error_cb)
        self._tasks: list[asyncio.Task[None]] = []
        self._served: asyncio.Task[None] | None = None

    def begin(self, spawn: "Spawn", cb: "Callback | None", *, auto_ack: bool) -> None:
        """Serve the callback, and listen for the heart of the daemon."""
        name = self._info.name
        if cb is not None:
            serving = self._serve(cb, auto_ack=auto_ack and self._pieces.hold.acknowledges)
            self._served = spawn(serving, f"jetstream {name}")
            self._tasks.append(self._served)
        if interval_s := self._info.config.idle_heartbeat:
            self._tasks.append(spawn(self._listen(interval_s), f"heartbeats of {name}"))

    @property
    def messages(self) -> "AsyncGenerator[Msg, None]":
        """Messages, one by one, until the subscription ends."""
        self._refuse_where_served()
        return self._pieces.messages()

    def _refuse_where_served(self) -> None:
        self._refuse_where_over()
        if self._served is not None:
            raise JetStreamMisuse(rule="a subscription with a callback hands out to nobody else")

    async def next_msg(self, timeout: float | None = 1.0) -> "Msg":  # noqa: ASYNC109 - as JetStream has it
        """The next message.

        Raises:
            TimeoutError: none came in time.
        """
        self._refuse_where_served()
        found = await self._pieces.take(1, timeout)
        if not found:
            if self._pieces.is_over:
                await self._leave_behind()
                raise SubscriptionOver(consumer=self._info.name)
            raise TimeoutError
        return found[0]

    async def drain(self) -> None:
        """Take what has come, and then leave as `unsubscribe` does.

        With a callback it returns once all of that was handled; what fails at the end is told to
        the error callback. Without one, `next_msg` and `messages` give the rest, and then end.
        """
        self._refuse_where_over()
        self._pieces.end_behind_what_came()
        if self._served is None or self._served is asyncio.current_task():
            return
        await asyncio.wait([self._served])

    async def unsubscribe(self) -> None:
        """Leave at once, as any subscription does; a callback that runs may finish."""
        try:
            await super().unsubscribe()
        finally:
            self._end_tasks()

    async def leave(self) -> None:
        """Leave, and delete nothing: the client ends."""
        await super().leave()
        self._end_tasks()

    def _end_tasks(self) -> None:
        for task in self._tasks:
            if task is not self._served:
                task.cancel()

    async def _serve(self, cb: "Callback", *, auto_ack: bool) -> None:
        try:
            async with aclosing(self._pieces.messages()) as messages:
                async for message in messages:
                    handled = await self._errors.hand_to(cb, message)
                    if handled and auto_ack and not message.is_settled:
                        await message.ack()
            await self._leave_behind()
        except DssError as error:
            await self._errors.tell(error)
            await self.leave()

    async def _listen(self, interval_s: float) -> None:
        while True:
            await asyncio.sleep(interval_s)
            silent_s = self._pieces.silent_s()
            if silent_s >= ALARM_INTERVALS * interval_s:
                await self._errors.tell(self._alarm(silent_s))
            if silent_s * 2 >= interval_s:
                self._pieces.ask()

    def _alarm(self, silent_s: float) -> ConsumerNotActive:
        name, last = self._info.name, self._pieces.last_seq
        return ConsumerNotActive(consumer=name, silent_s=f"{silent_s:.1f}", stream_seq=last)


class PullSubscription(JetStreamSubscription):
    """Messages as they are fetched; several subscriptions may pull from one consumer."""

    def __init__(
        self, consumers: "Consumers", pieces: "Pieces", info: ConsumerInfo, *, created: bool
    ) -> None:
        super().__init__(consumers, pieces, info, created=created)
        self._kept: deque[Msg] = deque()
        """Fetched, and too large for what was left of max_bytes; one at most."""
        self._waiting = 0

    async def fetch(
        self,
        batch: int = 1,
        timeout: float | None = 5.0,  # noqa: ASYNC109 - as JetStream has it
        heartbeat: float | None = None,
        *,
        no_wait: bool = False,
        max_bytes: int | None = None,
    ) -> "list[Msg]":
        """Up to so many messages: those that are there, or the first that come in time.

        Args:
            batch: how many at most.
            timeout: seconds to wait for the first; None: for ever.
            heartbeat: seconds; the fetch fails where the daemon is silent for twice as long.
            no_wait: give what is there, perhaps nothing.
            max_bytes: what subject, headers and data may take together.

        Raises:
            TimeoutError: none came in time.
            ConsumerNotActive: the daemon was silent for two heartbeats.
            GroupDestroyed: the consumer was deleted.
            JetStreamMisuse: a bound of the consumer or of the call is broken.
            SubscriptionOver: the subscription has ended.
        """
        self._refuse_where_over()
        self._check(batch, timeout, heartbeat, max_bytes)
        wait_s = NO_WAIT_S if no_wait else timeout
        self._waiting += 1
        try:
            found = self._take_kept(batch) or await self._taken(batch, wait_s, heartbeat)
        finally:
            self._waiting -= 1
        if max_bytes is not None:
            found = self._within(found, max_bytes)
        if not found and self._pieces.is_over:
            await self._leave_behind()
            raise SubscriptionOver(consumer=self._info.name)
        if not found and not no_wait:
            raise TimeoutError
        return found

    def _check(
        self,
        batch: int,
        timeout: float | None,
        heartbeat: float | None,
        max_bytes: int | None,
    ) -> None:
        config = self._info.config
        if batch < 1 or any(each is not None and each <= 0 for each in (timeout, max_bytes)):
            raise JetStreamMisuse(rule="batch, timeout and max_bytes are more than 0")
        if heartbeat is not None and timeout is not None and 2 * heartbeat >= timeout:
            raise JetStreamMisuse(rule="heartbeat is less than half of the timeout")
        bounds = {
            "max_batch": batch,
            "max_expires": timeout,
            "max_bytes": max_bytes,
            "max_waiting": self._waiting + 1,
        }
        for name, value in bounds.items():
            bound = getattr(config, name)
            if bound and value is not None and value > bound:
                raise JetStreamMisuse(rule=f"the consumer has {name} {bound}, and this is {value}")

    def _take_kept(self, batch: int) -> "list[Msg]":
        return [self._kept.popleft() for _ in range(min(batch, len(self._kept)))]

    async def _taken(
        self, batch: int, wait_s: float | None, heartbeat_s: float | None
    ) -> "list[Msg]":
        if heartbeat_s is None:
            return await self._pieces.take(batch, wait_s)
        ends_s = None if wait_s is None else monotonic() + wait_s
        while True:
            left_s = heartbeat_s if ends_s is None else min(heartbeat_s, ends_s - monotonic())
            found = await self._pieces.take(batch, max(left_s, 0))
            if found or self._pieces.is_over or (ends_s is not None and monotonic() >= ends_s):
                return found
            if (silent_s := self._pieces.silent_s()) >= FETCH_MISSED_INTERVALS * heartbeat_s:
                silent = f"{silent_s:.1f}"
                raise ConsumerNotActive(consumer=self._info.name, silent_s=silent, stream_seq=None)
            self._pieces.ask()

    def _within(self, found: "list[Msg]", max_bytes: int) -> "list[Msg]":
        """As many as fit; the others come with the next fetch."""
        size = 0
        for count, message in enumerate(found):
            size += _size(message)
            if size > max_bytes:
                self._kept.extendleft(reversed(found[count:]))
                if not count:
                    rule = f"the next message takes {size} bytes, and max_bytes is {max_bytes}"
                    raise JetStreamMisuse(rule=rule)
                return found[:count]
        return found


def _size(message: "Msg") -> int:
    headers = message.headers or {}
    return (
        len(message.subject)
        + len(message.data)
        + sum(len(name) + len(value) for name, value in headers.items())
    )
