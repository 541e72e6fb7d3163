"""Watching groups with real leaders: one look for all, and slow watchers hold nobody."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager

import pytest

from dss_core.answers import WatchedGrant
from dss_core.changes import PauseGroup
from dss_core.errors import Overloaded, Stopping, WatchTooOld
from dss_sim.played_groups import LOOK_AGAIN_S, PATIENCE_S
from dss_sim.played_sessions import Hall
from dssd.events.events import Events
from dssd.events.kinds import CONSUMER_SLOW
from dssd.events.model import Event, KeptEvent
from dssd.machines.start_point import Earliest
from dssd.machines.watch_board import Key, Value, WatchTopic
from dssd.operations.operations import Caller, Operations
from dssd.questions import watch_looks as watched_module
from dssd.questions import watches as watches_module
from dssd.questions.overviews import Overview
from dssd.questions.questions import Questions
from dssd.questions.watch_looks import Looks, WatchedLag, WatchedMember
from dssd.questions.watches import Token, Told, Watches, WatchRequest
from dssd.sessions.listing import SessionView
from dssd.store.rows import OperationRow

GROUP = "$share/g/orders/#"
NAME = "g@orders/#"
ALL = WatchRequest(frozenset(WatchTopic))
LAGS = WatchRequest(frozenset({WatchTopic.LAGS}))


class Watcher:
    """Applies what it is told."""

    def __init__(self, watching: AsyncGenerator[Told, None]) -> None:
        self._watching = watching
        self.items: dict[Key, Value] = {}
        self.token: Token | None = None
        self.replies = 0

    async def take(self) -> Told:
        """The next reply."""
        async with asyncio.timeout(PATIENCE_S):
            told = await anext(self._watching)
        self.replies += 1
        if told.anew:
            self.items.clear()
        self.items.update(told.changed)
        for key in told.removed:
            self.items.pop(key, None)
        self.token = told.token or self.token
        return told

    async def until(self, holds: Callable[[dict[Key, Value]], bool]) -> None:
        """Take replies until something holds of what is known."""
        while not holds(self.items):
            await self.take()

    def one(self, topic: WatchTopic, name: str = "", group: str = NAME) -> Value:
        """An item."""
        return self.items[Key(topic, group, name)]


@pytest.fixture
async def events(hall: Hall) -> AsyncIterator[Events]:
    async with await Events.open(hall.plant.store, hall.plant.clock) as opened:
        yield opened


@pytest.fixture
async def watches(
    hall: Hall,
    questions: Questions,
    operations: Operations,
    events: Events,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Watches]:
    plant = hall.plant
    monkeypatch.setattr(watches_module, "WATCH_EVERY_S", 0.001)
    monkeypatch.setattr(watches_module, "WATCH_REST_OF_LOOK", 0)
    monkeypatch.setattr(watched_module, "WATCH_SESSIONS_EVERY_S", 0.0)
    parts = (plant.groups, plant.registry, plant.catalogue, questions.overviews)
    watches = Watches(Looks(*parts, operations, hall.sessions, plant.clock), events)
    running = asyncio.create_task(watches.run(), name="looks for watchers")
    yield watches
    running.cancel()


@asynccontextmanager
async def watching(
    watches: Watches, wanted: WatchRequest = ALL, token: Token | None = None
) -> AsyncIterator[Watcher]:
    async with aclosing(watches.watch(wanted, token)) as found:
        yield Watcher(found)


async def orders(hall: Hall) -> None:
    streams = await hall.plant.topic("orders", 2)
    await hall.plant.publish(streams[0], 5)
    await hall.plant.group(GROUP, Earliest())


async def test_a_watcher_sees_how_things_are_and_then_what_changes(
    hall: Hall, watches: Watches, operations: Operations, events: Events
) -> None:
    await orders(hall)
    async with watching(watches) as watcher:
        assert (await watcher.take()).anew
        group = watcher.one(WatchTopic.GROUPS)
        assert isinstance(group, Overview)
        assert (group.state, group.lag, group.borrowers) == ("idle", 5, 0)
        free = watcher.one(WatchTopic.GRANTS, "orders/0/0")
        assert isinstance(free, WatchedGrant)
        assert (free.state, free.since_ms) == ("free", None)
        async with hall.attached() as client:
            await client.subscribe(GROUP)
            grant = (await client.records(5))[0][0]
            await client.ack(grant, 0, 3)
            await watcher.until(lambda items: lag_in(items) == 2)
            await watcher.until(lambda items: member_in(items) is not None)
            member = member_in(watcher.items)
            assert member is not None
            await watcher.until(lambda _: held(watcher) == member.client_id)
            session = watcher.one(WatchTopic.SESSIONS, member.client_id, "")
            assert isinstance(session, SessionView)
            assert session.connected
        await watcher.until(lambda items: member_in(items) is None)
        row = await operations.apply(PauseGroup("g"), caller=Caller("local:ana", "unix:"))
        operation = Key(WatchTopic.OPERATIONS, "", str(row.number))
        await watcher.until(lambda items: operation in items)
        watched = watcher.items[operation]
        assert isinstance(watched, OperationRow)
        assert watched.subject == NAME
        await events.tell(Event(CONSUMER_SLOW, "ana", "It was so."))
        number = str(events.last_number)
        await watcher.until(lambda items: Key(WatchTopic.EVENTS, "", number) in items)
        event = watcher.one(WatchTopic.EVENTS, number, "")
        assert isinstance(event, KeptEvent)
        assert event.subject == "ana"
        await hall.plant.groups.remove(hall.plant.groups.groups()[0].group_id)
        by_group = {WatchTopic.GROUPS, WatchTopic.MEMBERS, WatchTopic.GRANTS, WatchTopic.LAGS}
        await watcher.until(lambda items: not any(key.topic in by_group for key in items))


def lag_in(items: dict[Key, Value]) -> int | None:
    found = items.get(Key(WatchTopic.LAGS, NAME, "orders/0/0"))
    return found.lag.lag if isinstance(found, WatchedLag) else None


def member_in(items: dict[Key, Value]) -> WatchedMember | None:
    return next((each for each in items.values() if isinstance(each, WatchedMember)), None)


def held(watcher: Watcher) -> str:
    grant = watcher.one(WatchTopic.GRANTS, "orders/0/0")
    assert isinstance(grant, WatchedGrant)
    return grant.client_id


async def test_a_watcher_that_comes_back_is_told_what_it_missed(
    hall: Hall, watches: Watches
) -> None:
    await orders(hall)
    async with watching(watches, LAGS) as watcher:
        await watcher.take()
        token = watcher.token
    streams = hall.plant.catalogue.get("orders").streams()
    await hall.plant.publish(streams[1], 4)
    async with watching(watches, LAGS, token) as again:
        told = await again.take()
        assert not told.anew
        assert [key.name for key, _ in told.changed] == ["orders/0/1"]
        token = again.token
    async with watching(watches, LAGS, token) as third:
        assert await third.take() == Told(False, [], [], token)


async def test_a_watcher_of_what_is_forgotten_must_begin_anew(
    hall: Hall, watches: Watches, monkeypatch: pytest.MonkeyPatch
) -> None:
    await orders(hall)
    monkeypatch.setattr(watches_module, "WATCH_KEPT_S", 0.0)
    async with watching(watches, LAGS) as watcher:
        await watcher.take()
        token = watcher.token
    assert token is not None
    with pytest.raises(WatchTooOld):
        async with watching(watches, LAGS, token._replace(instance=b"another")) as another:
            await another.take()
    async with asyncio.timeout(PATIENCE_S):
        while watches._board.entries:  # noqa: ASYNC110 - it is told to nobody
            await asyncio.sleep(LOOK_AGAIN_S)
    with pytest.raises(WatchTooOld):
        async with watching(watches, LAGS, token) as late:
            await late.take()
    async with watching(watches, LAGS, token._replace(revision=0)) as anew:
        assert (await anew.take()).anew
        assert len(anew.items) == 2


async def test_a_slow_watcher_is_told_the_latest_only_and_holds_no_other(
    hall: Hall, watches: Watches
) -> None:
    await orders(hall)
    stream = hall.plant.catalogue.get("orders").streams()[0]
    async with watching(watches, LAGS) as slow, watching(watches, LAGS) as quick:
        await slow.take()
        for lag in range(6, 10):
            await hall.plant.publish(stream, 1)
            await quick.until(lambda items, lag=lag: lag_in(items) == lag)  # type: ignore[misc]
        told = await slow.take()
        assert [key.name for key, _ in told.changed] == ["orders/0/0"]
        assert lag_in(slow.items) == 9
        assert slow.replies == 2


async def test_a_large_answer_comes_in_parts_of_which_the_last_has_the_token(
    hall: Hall, watches: Watches, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watches_module, "WATCH_REPLY_ITEMS_MAX", 1)
    await orders(hall)
    async with watching(watches, LAGS) as watcher:
        first, second = await watcher.take(), await watcher.take()
    assert (first.anew, first.token) == (True, None)
    assert not second.anew
    assert second.token is not None
    assert len(watcher.items) == 2


async def test_a_watcher_of_named_groups_is_told_of_no_others(hall: Hall, watches: Watches) -> None:
    await orders(hall)
    await hall.plant.group("$share/other/orders/#", Earliest())
    topics = frozenset({WatchTopic.GROUPS, WatchTopic.LAGS, WatchTopic.GRANTS})
    for name in ("other", "other@orders/#"):
        async with watching(watches, WatchRequest(topics, frozenset({name}))) as watcher:
            await watcher.take()
            assert {key.group for key in watcher.items} == {"other@orders/#"}
            assert len(watcher.items) == 5


async def test_nothing_is_looked_at_before_somebody_watches(
    hall: Hall, watches: Watches, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[object] = []
    look = watches._look

    async def noted_look() -> None:
        looked.append(None)
        await look()

    monkeypatch.setattr(watches, "_look", noted_look)
    await orders(hall)
    for _ in range(100):
        await asyncio.sleep(0)
    assert not looked
    async with watching(watches) as watcher:
        await watcher.take()
    assert looked


async def test_watchers_are_few_and_end_with_the_daemon(
    hall: Hall, watches: Watches, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watches_module, "WATCHES_MAX", 1)
    async with watching(watches, LAGS) as watcher:
        await watcher.take()
        with pytest.raises(Overloaded):
            async with watching(watches, LAGS) as another:
                await another.take()
        watches.stop()
        with pytest.raises(Stopping):
            await watcher.take()
