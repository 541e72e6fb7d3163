"""One process of a program: the client library's own session, subscriptions and `run`.

It has an event loop of its own. It may be killed between two steps or in a handler, and then
nothing of it runs on; it may stand still; and it ends by itself if its session fails.

Invariant: only the library's channel is simulated here; a process ends once.
"""

import asyncio
import traceback
from collections.abc import Coroutine, Iterator
from typing import TYPE_CHECKING, Any, cast

from dss_client._doubt import HELD_AGAIN_S, SILENCE_OF_LEASE
from dss_client._loop_watch import LOOP_HELD_S
from dss_client._session_options import SessionOptions
from dss_client.limits import PING_OF_LEASE
from dss_client.session import Session
from dss_client.subscription import Subscription
from dss_core.errors import DssError, GroupDestroyed
from dss_core.limits import LEASE_MS
from dss_sim.sessions.handlers import Handler
from dss_sim.sessions.library_call import LibraryCall, LibraryChannel, LibraryLink
from dss_sim.sessions.run_turns import Turn
from dss_sim.sessions.takers import Taking, take
from dss_sim.sessions.timeline import VirtualLoop

if TYPE_CHECKING:
    from dss_client._connection import Connection
    from dss_sim.sessions.program import Program

HEARD_US = (0, 8_000)
"""How long a process that continues takes to receive what came in meanwhile."""
TOLD_US = (0, 6_000_000)
"""How long until a client learns that its connection was reset between it and the daemon."""
HELD_US = int(LOOP_HELD_S * 1e6)
"""After it stood still for this long, the library asks the daemon before it hands out."""
ASKED_US = int(HELD_AGAIN_S * 1e6) + 50_000
"""Unless it has already asked."""
PINGED_AFTER_US = int(PING_OF_LEASE * LEASE_MS * 1e3)
DOUBTS_AFTER_US = int(SILENCE_OF_LEASE * LEASE_MS * 1e3)
"""Silences of the daemon: the one after which the library pings, and the one after which it
asks."""


class Process:
    """A process; it begins at once."""

    def __init__(self, program: "Program") -> None:
        self.program = program
        # Its loop, files and sockets are incomplete, but nobody asks for the missing parts here.
        self.loop = VirtualLoop(program.world.timeline)  # type: ignore[abstract]
        self.links: dict[int, LibraryLink] = {}
        """By grant: on which call it was lent."""
        self.ended_by = ""
        """The conditions that ended it."""
        self._channel = LibraryChannel(self)
        self._subscriptions: dict[str, Subscription] = {}
        self._runs: dict[str, asyncio.Task[None]] = {}
        self._retires = False
        self._stood_us = 0
        self._went_on_us = self._asked_us = -ASKED_US
        self._is_parted = False
        """The way to the daemon broke, and the library does not know yet."""
        self._root = self.loop.create_task(self._main(), name=program.name)
        self._root.add_done_callback(self._over)

    @property
    def is_over(self) -> bool:
        """Whether it is gone."""
        return self.loop.abandoned or self._root.done()

    @property
    def link(self) -> LibraryLink | None:
        """Its newest call that it can use."""
        calls: list[LibraryCall] = self._channel.calls
        link = calls[-1].link if calls else None
        return link if link is not None and link.is_live else None

    def has_all(self, filters: set[str]) -> bool:
        """Whether the daemon has given it exactly these subscriptions."""
        link = self.link
        return (
            link is not None
            and not self.loop.stands_still
            and self._subscriptions.keys() == filters
            and {each.number for each in self._subscriptions.values()} == link.groups.keys()
        )

    def turns(self) -> Iterator[Turn]:
        """The streams of its runs that nothing blocks."""
        link, runs = self.link, self.program.world.runs
        if link is None or self.loop.stands_still:
            return
        paused = {each.number for each in self._subscriptions.values() if each.state == "paused"}
        for subscription, stream in link.lent.values():
            group = link.groups.get(subscription)
            if group and subscription not in paused and not runs.is_busy(link.name, group):
                yield Turn(link.name, group, stream)

    # What happens to it

    def die(self, noticed_us: int = 0) -> None:
        """It is killed, here and now."""
        self.loop.abandon()
        if self.link is not None:
            self.program.world.cut(self.link, noticed_us)
        self.program.ended(self)

    def stand_still(self) -> None:
        """Stand still until `go_on`."""
        self.loop.freeze()
        self._stood_us = self.program.world.timeline.now_us
        if self.link is not None and self.link.call is not None:
            self.link.call.delay()

    def go_on(self) -> None:
        """Continue after it stood still. Timers that came due meanwhile go first, then what the
        transport received."""
        if not self.loop.stands_still:
            return
        timeline = self.program.world.timeline
        self.loop.thaw()
        stood_us = timeline.now_us - self._stood_us
        asked_us = min(self._stood_us - self._went_on_us, timeline.now_us - self._asked_us)
        self._went_on_us = timeline.now_us
        if self._is_parted and (stood_us <= HELD_US or asked_us < ASKED_US):
            # It does not ask, so it has to learn at once that its connection is lost.
            self._hear()
        else:
            timeline.after(self.program.chance.randint(*HEARD_US), self._hear)

    def pinged(self, heard_us: int) -> None:
        """The library pings; the time is when it last received something from the daemon.

        During a silence it pings by itself. Otherwise it asks, because it is not sure.
        """
        now_us = self.program.world.timeline.now_us
        if not PINGED_AFTER_US <= now_us - heard_us <= DOUBTS_AFTER_US:
            self._asked_us = now_us

    def _hear(self) -> None:
        if self.loop.stands_still:
            return
        for call in self._channel.calls:
            if call.link is not None and call.link.call is not None:
                call.link.call.thaw()
        if self._is_parted:
            self._is_parted = False
            self._channel.calls[-1].lose()

    def part(self, noticed_us: int) -> None:
        """The way to the daemon breaks; both sides learn it sooner or later.

        If something lies between, the client learns it late, or never.
        """
        link = self.link
        if link is None:
            return
        self.program.world.cut(link, noticed_us)
        if link.local:
            self._is_parted = True
            self._hear()
        else:
            told_us = self.program.chance.randint(*TOLD_US)
            self.program.world.timeline.after(told_us, self._channel.calls[-1].lose)

    def run_anew(self) -> None:
        """Its runs are cancelled, and others begin on the same subscriptions."""
        for run in self._runs.values():
            run.cancel()

    def retire(self) -> None:
        """Tell it to end: it first finishes what is being handled."""
        self._retires = True
        for filter_, subscription in self._subscriptions.items():
            self.loop.create_task(subscription.drain(), name=f"drain {filter_}")

    # What it does

    def _over(self, root: "asyncio.Task[None]") -> None:
        error = None if root.cancelled() else root.exception()
        if error is not None and not self.loop.abandoned:
            self.program.world.fail("".join(traceback.format_exception(error)))
        self.program.ended(self)

    async def _main(self) -> None:
        try:
            await self._live()
        except* DssError as conditions:
            self.ended_by = str(conditions.exceptions)

    async def _live(self) -> None:
        async with asyncio.TaskGroup() as tasks:

            def spawn(work: Coroutine[Any, Any, None], name: str) -> "asyncio.Task[None]":
                return tasks.create_task(work, name=name)

            session = Session(cast("Connection", self._channel), self._options(), spawn=spawn)
            session.start()
            uses = [
                tasks.create_task(self._use(session, filter_), name=f"use {filter_}")
                for filter_ in sorted(self.program.filters)
            ]
            if uses:
                await asyncio.wait(uses)
            await session.close()

    def _options(self) -> SessionOptions:
        program = self.program
        return SessionOptions(
            client_id=program.name,
            clean_start=not program.connections,
            session_expiry_s=program.plan.expiry_s,
            credit_records=program.credit_records,
        )

    async def _use(self, session: Session, filter_: str) -> None:
        async def opened() -> Session:
            return session

        subscription = Subscription(opened, self.program.options_of(filter_))
        self._subscriptions[filter_] = subscription
        try:
            async with subscription:
                while not self._retires:
                    await self._run(filter_, subscription)
        except GroupDestroyed:
            self.program.filters.discard(filter_)
        finally:
            del self._subscriptions[filter_]

    async def _run(self, filter_: str, subscription: Subscription) -> None:
        """Run until it is cancelled, or until the records end."""
        handler = Handler(self)
        running = self._taking(filter_, subscription, handler)
        run = self._runs[filter_] = self.loop.create_task(running, name=f"run {filter_}")
        try:
            await asyncio.wait([run])
        finally:
            run.cancel()
            await asyncio.wait([run])
            handler.run_ended()
        if not run.cancelled():
            run.result()

    def _taking(
        self, filter_: str, subscription: Subscription, handler: Handler
    ) -> Coroutine[Any, Any, None]:
        program = self.program
        way, concurrency = program.plan.way_of(filter_), program.plan.concurrency
        if way == "run":
            return subscription.run(handler.handle, concurrency=concurrency)
        taking = Taking(subscription, way, concurrency, program.chance, lambda: self._retires)
        return take(taking, handler)
