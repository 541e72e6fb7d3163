"""A daemon as the source: one watch, and a few questions beside it.

Invariant: the daemon counts as away exactly while it does not answer its status, or refuses the
watch; it is asked again until it is back, without a key.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from dss_core.errors import DssError, TimedOut
from dssctl.connection import connected
from dssctl.settings import Settings
from dssctl.top.feed.answers import answered
from dssctl.top.feed.clock import wall_ms
from dssctl.top.feed.job_answers import JobAnswers
from dssctl.top.limits import TICK_S
from dssctl.top.model.answers import Answer, Question
from dssctl.top.model.picture import WATCHED, Happened, Listed, Lost, Stands, Stood, Ticked, Updated

if TYPE_CHECKING:
    from dss_client import Client, Operation, OperationPlan, WatchUpdate
    from dss_client.changes import Change
    from dss_client.schedules import ScheduleRun
    from dssctl.top.feed.source import Tell
    from dssctl.top.model.picture import Picture
    from dssctl.top.model.places import Place

EVENTS_BEFORE = 50
"""How many events from before the dashboard began are shown: a screen full."""


AWAY_FIRST_S = 0.2
AWAY_MAX_S = 2.0
"""The pauses between attempts at a daemon that is away double between these."""


CALL_S = 5.0
"""A question of the dashboard that takes longer has failed; the next one is asked anyway."""


STUCK_REST = 20
"""After a question for what does not move, the next one waits this many times as long as the answer
took: the daemon looks at each stream of each group."""


LISTS_S = 5.0
"""The pause between two lists of topics and schedules, and of what does not move: no watch reports
these."""


STATUS_S = 1.0
"""The pause between two questions for the daemon's status: a loss is noticed within this time."""


FEED_REST_S = 0.02
FEED_REST_ITEM_S = 0.000_04
"""After each update nothing is read for the first of these times, plus the second one for each
item. That is twice the time that making an item takes, so two thirds of the time are left for
keys."""


Given = TypeVar("Given")


def rest_s(update: "WatchUpdate") -> float:
    """How long to read nothing more: keys come first.

    The daemon sends a slow watcher fewer updates, with the latest values.
    """
    return len(update.changed) * FEED_REST_ITEM_S + (FEED_REST_S if update.complete else 0)


class Live:
    """Watches a daemon, for as long as `run` runs."""

    def __init__(self, settings: Settings, *, private: bool) -> None:
        self._settings = settings
        self._private = private
        self._client: Client | None = None
        self._refused = ""
        """Why the watch does not run although the daemon answers."""
        self._jobs = JobAnswers()
        self._look = asyncio.Event()
        """Set when something was heard that calls for a look at the daemon at once."""

    async def run(self, tell: "Tell") -> None:
        """Report the state and each change, until it is cancelled."""
        async with connected(self._settings) as client, self._heard(), asyncio.TaskGroup() as tasks:
            self._client = client
            tasks.create_task(self._ticks(tell), name="top clock")
            tasks.create_task(self._watch(client, tell), name="top watch")
            tasks.create_task(self._status(client, tell), name="top status")
            tasks.create_task(self._lists(client, tell), name="top lists")
            tasks.create_task(self._stuck(client, tell), name="top stuck")

    async def answer(self, place: "Place", question: Question, picture: "Picture") -> Answer:
        """The answer to a question about a place, which no watch reports."""
        client = self._connected()
        try:
            return await in_time(answered(client, place, question, picture, self._jobs))
        except DssError as failure:
            return Answer(place, failure=failure.message)

    async def plan(self, change: "Change") -> "OperationPlan":
        """What a change would do.

        Raises:
            DssError: what stands against it.
        """
        return await in_time(self._connected().operations.plan(change))

    async def apply(self, plan: "OperationPlan", *, reason: str, operation_id: str) -> "Operation":
        """Do what was planned.

        Raises:
            DssError: what stands against it.
        """
        # The call has its own timeout, and survives a lost connection within it.
        operations = self._connected().operations
        return await operations.apply(plan, reason=reason, operation_id=operation_id)

    async def trigger(self, schedule: str, *, reason: str) -> "ScheduleRun":
        """Run a schedule's task now.

        Raises:
            DssError: what stands against it.
        """
        return await in_time(self._connected().schedules.trigger(schedule, reason=reason))

    def _connected(self) -> "Client":
        assert self._client is not None, "asked before it ran"
        return self._client

    async def _ticks(self, tell: "Tell") -> None:
        while True:
            tell(Ticked(wall_ms()))
            await asyncio.sleep(TICK_S)

    async def _watch(self, client: "Client", tell: "Tell") -> None:
        pause_s = AWAY_FIRST_S
        while True:
            with suppress(DssError):
                tell(Happened((await in_time(client.events.list(latest=EVENTS_BEFORE))).events))
            try:
                anew = False
                async for update in client.watch(*WATCHED, all=self._private):
                    self._refused, pause_s = "", AWAY_FIRST_S
                    anew |= update.anew
                    tell(Updated(update))
                    # New items are wanted at once.
                    await asyncio.sleep(0 if anew else rest_s(update))
                    anew &= not update.complete
            except DssError as failure:
                self._refused = failure.message
            self._look.set()
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, AWAY_MAX_S)

    async def _status(self, client: "Client", tell: "Tell") -> None:
        while True:
            try:
                status = await in_time(client.daemon.status())
                tell(Lost(wall_ms(), self._refused) if self._refused else Stood(status))
            except DssError as failure:
                tell(Lost(wall_ms(), failure.message))
            self._look.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(STATUS_S):
                    await self._look.wait()

    async def _lists(self, client: "Client", tell: "Tell") -> None:
        while True:
            # The status tells that the daemon is away.
            with suppress(DssError):
                topics = await in_time(client.topics.list())
                tell(Listed(topics, await in_time(client.schedules.list())))
            await asyncio.sleep(LISTS_S)

    async def _stuck(self, client: "Client", tell: "Tell") -> None:
        loop = asyncio.get_running_loop()
        while True:
            began_s = loop.time()
            with suppress(DssError):
                # The call has its own timeout, and may take long if there is much to look at.
                tell(Stands(await client.groups.stuck(), await client.daemon.findings()))
            await asyncio.sleep(max(LISTS_S, STUCK_REST * (loop.time() - began_s)))

    @asynccontextmanager
    async def _heard(self) -> AsyncIterator[None]:
        """A warning of the client about a lost connection triggers a look at the daemon, and is not
        printed."""
        log = logging.getLogger("dss_client")
        handler = _Ear(self._look.set)
        log.addHandler(handler)
        try:
            yield
        finally:
            log.removeHandler(handler)


class _Ear(logging.Handler):
    """Hears warnings."""

    def __init__(self, heard: Callable[[], None]) -> None:
        super().__init__(logging.WARNING)
        self._heard = heard

    def emit(self, record: logging.LogRecord) -> None:
        """A warning was logged."""
        self._heard()


async def in_time(call: Awaitable[Given]) -> Given:
    """Await an answer for as long as a dashboard may wait.

    Raises:
        TimedOut: it did not come.
    """
    try:
        async with asyncio.timeout(CALL_S):
            return await call
    except TimeoutError as late:
        raise TimedOut(what="The call", seconds=f"{CALL_S:g}") from late
