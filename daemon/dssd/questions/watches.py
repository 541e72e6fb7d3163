"""The watchers, and the one look that serves all of them.

While there is a watcher, a look collects from time to time everything that any watcher wants; the
board (`dssd.machines.watch_board`) determines the changes. A watcher takes changes from the board
when it has room: it has no queue here, only the revision of its last reply. Events come from the
store by number, each once. Invariant: without a watcher nothing is looked at, and after a while
nothing is kept.
"""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass
from time import thread_time
from typing import NamedTuple, NoReturn

from dss_core.errors import Overloaded, Stopping, WatchTooOld
from dssd.events.events import Events
from dssd.events.limits import EVENTS_LISTED_MAX
from dssd.events.selection import EventSelection
from dssd.leaders.declarations import EXCLUSIVE
from dssd.loop_yield import LoopTurn
from dssd.machines.watch_board import (
    Board,
    Forget,
    Key,
    Value,
    WatchTopic,
    changes_after,
    is_known,
    step,
)
from dssd.questions.watch_looks import Looks
from dssd.store.rows import GroupRow

WATCH_EVERY_S = 0.25
"""A watched item is told at most four times a second: as often as people see a difference."""

WATCH_REST_OF_LOOK = 50
"""After each look the watch rests this many times as long as the look used the processor: all looks
together take two hundredths of it."""

WATCH_REST_S_MAX = 2.0
"""The longest such rest: of thousands of groups under load, or while others keep the loop busy."""

WATCH_KEPT_S = 60.0
"""How long the board is kept after the last watcher left, so that a watcher that lost its
connection can continue."""

WATCHES_MAX = 200
"""How many calls may watch: some people, and programs that watch for them."""

WATCH_REPLY_ITEMS_MAX = 1_000
"""How many items one reply has: some hundred kilobytes, encoded in a few milliseconds."""


INSTANCE_BYTES = 8
"""The length of a daemon's random number: two daemons, or two runs of one, hardly ever share it."""


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """What a watcher wants to see."""

    topics: frozenset[WatchTopic]
    groups: frozenset[str] = frozenset()
    """NAME or NAME@FILTER; all where empty."""
    private: bool = False

    def takes(self, key: Key) -> bool:
        """Whether it wants an item."""
        return key.topic in self.topics and (
            not key.group or self._takes(key.group, is_private=key.private)
        )

    def takes_group(self, group: GroupRow) -> bool:
        """Whether it may want what belongs to a group."""
        return self._takes(group.full_name, is_private=group.kind == EXCLUSIVE)

    def _takes(self, name: str, *, is_private: bool) -> bool:
        named = not self.groups or name in self.groups or name.partition("@")[0] in self.groups
        return named and (self.private or not is_private)


class Token(NamedTuple):
    """From where to continue."""

    instance: bytes
    revision: int
    """0: begin anew."""
    event_number: int


class Told(NamedTuple):
    """One reply to a watcher."""

    anew: bool
    """All items are sent anew: those that are not among them are gone."""
    changed: list[tuple[Key, Value]]
    removed: list[Key]
    token: Token | None
    """The watcher is up to date, and may continue from here."""


@dataclass(slots=True)
class _Watcher:
    """How far one watcher is."""

    wanted: WatchRequest
    revision: int
    """The watcher has all changes up to it."""
    event_number: int
    anew: bool
    """The next reply sends all items, as the first one does."""
    greeted: bool = False
    """It has had a reply, perhaps only that nothing changed."""
    has_more_events: bool = False


class Watches:
    """Built once. `run` beside the calls looks while somebody watches."""

    def __init__(self, looks: Looks, events: Events) -> None:
        self._looks = looks
        self._events = events
        self._board = Board()
        self._instance = secrets.token_bytes(INSTANCE_BYTES)
        self._watchers: dict[object, WatchRequest] = {}
        self._came = asyncio.Event()
        """Somebody came since the last look began."""
        self._begun = self._ended = 0
        """The numbers of looks that began, and that ended."""
        self._waiting = 0
        """How many watchers wait for their first look."""
        self._told_of_events = 0
        self._turned = asyncio.Event()
        """Set, and made anew, when there may be more to tell."""
        self._stopping = False

    def stop(self) -> None:
        """End every `watch`."""
        self._stopping = True
        self._wake()

    async def run(self) -> NoReturn:
        """Look while somebody watches; the first look is at everything, as one before may have
        failed."""
        self._looks.forget()
        while True:
            await self._somebody()
            # Of the processor, with what others did meanwhile: a busy daemon is looked at less.
            began_s = thread_time()
            await self._look()
            await self._rest((thread_time() - began_s) * WATCH_REST_OF_LOOK)

    async def watch(self, wanted: WatchRequest, token: Token | None) -> AsyncGenerator[Told, None]:
        """All items, or the changes since a token; then each change.

        Raises:
            Overloaded: too many watch.
            WatchTooOld: the changes since the token are forgotten.
            Stopping: the daemon stops.
            DssError: the store cannot be read.
        """
        revision = self._resumed(token)
        watcher = _Watcher(wanted, revision, self._event_number(token), anew=not revision)
        with self._watching(wanted):
            await self._seen_once()
            while not self._stopping:
                turned = self._turned  # taken before: what comes meanwhile sets it
                async with aclosing(self._pass(watcher)) as passing:
                    async for told in passing:
                        yield told
                if not watcher.has_more_events:
                    await turned.wait()
        raise Stopping

    async def _pass(self, watcher: _Watcher) -> AsyncGenerator[Told, None]:
        """All changes up to now, in replies of a bounded size."""
        top, after, is_first = self._board.revision, watcher.revision, watcher.anew
        events = await self._new_events(watcher)
        turn, told_some = LoopTurn(), False
        while True:
            await turn.give_way()
            if not is_first and not is_known(self._board, after):
                raise WatchTooOld
            found = changes_after(self._board, after, top, WATCH_REPLY_ITEMS_MAX)
            changed = [each for each in found.changed if watcher.wanted.takes(each[0])]
            # A watcher that gets everything needs no removals.
            removed = [] if is_first else list(filter(watcher.wanted.takes, found.removed))
            after = found.last
            if after >= top:
                break
            if changed or removed:
                yield self._told(watcher, changed, removed, None)
                told_some = True
        watcher.revision = top
        changed += events
        if changed or removed or told_some or not watcher.greeted:
            token = Token(self._instance, top, watcher.event_number)
            yield self._told(watcher, changed, removed, token)

    @staticmethod
    def _told(
        watcher: _Watcher,
        changed: list[tuple[Key, Value]],
        removed: list[Key],
        token: Token | None,
    ) -> Told:
        anew, watcher.anew, watcher.greeted = watcher.anew, False, True
        return Told(anew, changed, removed, token)

    async def _new_events(self, watcher: _Watcher) -> list[tuple[Key, Value]]:
        watcher.has_more_events = False
        events, after = self._events, watcher.event_number
        if WatchTopic.EVENTS not in watcher.wanted.topics or events.last_number <= after:
            return []
        page = await events.first_after(EventSelection(), after, EVENTS_LISTED_MAX)
        watcher.event_number, watcher.has_more_events = page.last, not page.is_whole
        return [(Key(WatchTopic.EVENTS, "", str(each.number)), each) for each in page.events]

    def _resumed(self, token: Token | None) -> int:
        """The revision up to which the watcher is up to date; 0: none."""
        if token is None or not token.revision:
            return 0
        known = token.instance == self._instance
        if not known or not is_known(self._board, token.revision):
            raise WatchTooOld
        return token.revision

    def _event_number(self, token: Token | None) -> int:
        """The number of the event after which it begins."""
        if token is None:
            return self._events.last_number
        if token.instance != self._instance and token.event_number > self._events.last_number:
            return 0  # the daemon has another store now: all its events are new
        return token.event_number

    @contextmanager
    def _watching(self, wanted: WatchRequest) -> Iterator[None]:
        if len(self._watchers) >= WATCHES_MAX:
            raise Overloaded(what="Watching", limit=f"{WATCHES_MAX} calls")
        watcher = object()
        self._watchers[watcher] = wanted
        self._came.set()
        try:
            yield
        finally:
            del self._watchers[watcher]

    async def _seen_once(self) -> None:
        """Wait for a look that covers the wishes of all present watchers."""
        wanted = self._begun + 1
        self._waiting += 1
        try:
            while self._ended < wanted and not self._stopping:
                await self._turned.wait()
        finally:
            self._waiting -= 1

    async def _somebody(self) -> None:
        """Wait until somebody watches; forget all meanwhile if it takes long."""
        while not self._watchers:
            self._came.clear()
            try:
                async with asyncio.timeout(WATCH_KEPT_S if self._board.entries else None):
                    await self._came.wait()
            except TimeoutError:
                self._board, _ = step(self._board, Forget())
                self._looks.forget()

    async def _look(self) -> None:
        self._came.clear()
        self._begun += 1
        every = list(self._watchers.values())
        topics = frozenset[WatchTopic]().union(*(wanted.topics for wanted in every))
        looking = self._looks.look(
            topics, lambda group: any(wanted.takes_group(group) for wanted in every)
        )
        moved = False
        async with aclosing(looking) as found:
            async for given in found:
                self._board, effects = step(self._board, given)
                moved = moved or bool(effects)
        self._ended = self._begun
        told_of, self._told_of_events = self._told_of_events, self._events.last_number
        if moved or self._waiting or told_of != self._told_of_events:
            self._wake()

    async def _rest(self, rest_s: float) -> None:
        """Rest between looks; a new watcher ends the rest."""
        await asyncio.sleep(WATCH_EVERY_S)
        longer_s = min(rest_s, WATCH_REST_S_MAX) - WATCH_EVERY_S
        if longer_s > 0 and self._watchers:
            with suppress(TimeoutError):
                async with asyncio.timeout(longer_s):
                    await self._came.wait()

    def _wake(self) -> None:
        turned, self._turned = self._turned, asyncio.Event()
        turned.set()
