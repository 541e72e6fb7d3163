"""Collects all watched items once, for all watchers together.

Groups and lags are those of `Overviews`, which lists and samples share. Members and grants are read
again only for groups whose leader had an input, or that changed leaders. Invariant: an item is the
same value until something of it changed. Averages, which fade by themselves, are renewed no oftener
than they are sampled. Nothing here starts a leader or knows of watchers.
"""

from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, fields, replace
from itertools import islice
from operator import attrgetter
from typing import NamedTuple

from dss_core.answers import WatchedGrant
from dss_core.errors import StreamNotFound
from dss_core.ids import StreamId
from dssd.clock import Clock
from dssd.jobs.held_job import JobView
from dssd.leaders.declarations import EXCLUSIVE
from dssd.leaders.groups import Groups
from dssd.leaders.lag import hindrance_sentence
from dssd.leaders.registry import Registry
from dssd.loop_yield import LoopTurn
from dssd.machines.leader.events import LeaderView, MemberView, StreamView
from dssd.machines.watch_board import (
    Key,
    OnlyThese,
    Scope,
    ScopeLooked,
    Value,
    WatchInput,
    WatchTopic,
)
from dssd.operations.operations import Operations
from dssd.questions.limits import SAMPLE_EVERY_S
from dssd.questions.overviews import Overview, Overviews, StreamLag
from dssd.questions.rates import Rates
from dssd.schedules.views import ScheduleView
from dssd.sessions.limits import SESSIONS_MAX
from dssd.sessions.sessions import Sessions
from dssd.store.rows import GroupRow
from dssd.topics.catalogue import Catalogue, Topic

WATCHED_OPERATIONS_MAX = 100
"""How many ended operations are watched, the newest, beside those that run: two screens."""

WATCH_SESSIONS_EVERY_S = 1.0
"""How often sessions are looked at: a look reads all subscriptions from the store."""


Wants = Callable[[GroupRow], bool]


@dataclass(frozen=True, slots=True)
class WatchedMember:
    """A member of a group."""

    group: str
    borrower_id: bytes
    client_id: str
    streams: int
    connected_at_ms: int


@dataclass(frozen=True, slots=True)
class WatchedLag:
    """How far behind a group is in a stream."""

    group: str
    stream: str
    lag: StreamLag


class _Mark(NamedTuple):
    """A mark of the last read of a group; it differs if something may have changed."""

    glance: object
    leader_changes: int


class Looks:
    """Built once; asked by one task."""

    def __init__(
        self,
        groups: Groups,
        registry: Registry,
        catalogue: Catalogue,
        overviews: Overviews,
        operations: Operations,
        sessions: Sessions,
        clock: Clock,
        schedules: Callable[[], Sequence[ScheduleView]] = tuple,
        jobs: Callable[[], Sequence[JobView]] = tuple,
    ) -> None:
        self._groups = groups
        self._registry = registry
        self._catalogue = catalogue
        self._overviews = overviews
        self._operations = operations
        self._sessions = sessions
        self._clock = clock
        self._schedules = schedules
        self._jobs = jobs
        self._told: dict[int, Overview] = {}
        self._averaged_ms: int | None = None
        self._sessions_ms: int | None = None
        self._lent: dict[int, tuple[_Mark, dict[Key, Value]]] = {}
        self._lags: dict[int, object] = {}
        catalogue.watch(self._topic_changed)

    def forget(self) -> None:
        """Make the next look return everything again."""
        self._told.clear()
        self._averaged_ms = self._sessions_ms = None
        self._lent.clear()
        self._lags.clear()

    async def look(
        self, topics: Collection[WatchTopic], wants: Wants
    ) -> AsyncGenerator[WatchInput, None]:
        """The items of the topics; by group only for wanted groups that may have changed."""
        if WatchTopic.GROUPS in topics or WatchTopic.LAGS in topics:
            yield await self._look_at_groups()
        if WatchTopic.OPERATIONS in topics:
            yield self._look_at_operations()
        if WatchTopic.SCHEDULES in topics:
            yield self._look_at_schedules()
        if WatchTopic.JOBS in topics:
            yield self._look_at_jobs()
        if WatchTopic.SESSIONS in topics and self._is_due(
            self._sessions_ms, WATCH_SESSIONS_EVERY_S
        ):
            self._sessions_ms = self._clock.now_ms()
            yield await self._look_at_sessions()
        by_group = [topic for topic in topics if topic in _BY_GROUP]
        if by_group:
            async with aclosing(self._look_into_groups(by_group, wants)) as found:
                async for looked in found:
                    yield looked

    async def _look_into_groups(
        self, topics: Collection[WatchTopic], wants: Wants
    ) -> AsyncGenerator[WatchInput, None]:
        turn = LoopTurn()
        for group in self._groups.groups():
            await turn.give_way()
            if not wants(group):
                continue
            if WatchTopic.LAGS in topics:
                for looked in self._look_at_lags(group):
                    yield looked
            if WatchTopic.MEMBERS in topics or WatchTopic.GRANTS in topics:
                for looked in await self._look_at_lent(group, turn):
                    yield looked
        present = frozenset(group.group_id for group in self._groups.groups())
        for group_id in (self._lent.keys() | self._lags.keys()) - present:
            self._lent.pop(group_id, None)
            self._lags.pop(group_id, None)
        for topic in _BY_GROUP:
            yield OnlyThese(topic, present)

    def _topic_changed(self, topic: Topic, removed: bool) -> None:
        # Streams come and go, and stored rows with them; since when others are so stays known.
        self._lent = {
            group_id: (_Mark(None, -1), items) for group_id, (_, items) in self._lent.items()
        }

    async def _look_at_groups(self) -> ScopeLooked:
        every = await self._overviews.all(private=True)
        due = self._is_due(self._averaged_ms, SAMPLE_EVERY_S)
        if due:
            self._averaged_ms = self._clock.now_ms()
        told: dict[int, Overview] = {}
        for overview in every:
            group_id = overview.group.group_id
            known = None if due else self._told.get(group_id)
            told[group_id] = _averaged(overview, known)
        self._told = told
        items: dict[Key, Value] = {
            _key(WatchTopic.GROUPS, overview.group): overview for overview in told.values()
        }
        return ScopeLooked(Scope(WatchTopic.GROUPS), items)

    def _is_due(self, last_ms: int | None, every_s: float) -> bool:
        return last_ms is None or self._clock.now_ms() - last_ms >= every_s * 1_000

    def _look_at_operations(self) -> ScopeLooked:
        rows = [*islice(self._operations.newest(), WATCHED_OPERATIONS_MAX)]
        rows += self._operations.unended()
        items = {Key(WatchTopic.OPERATIONS, "", str(row.number)): row for row in rows}
        return ScopeLooked(Scope(WatchTopic.OPERATIONS), items)

    def _look_at_jobs(self) -> ScopeLooked:
        items: dict[Key, Value] = {
            Key(WatchTopic.JOBS, "", view.row.name): view for view in self._jobs()
        }
        return ScopeLooked(Scope(WatchTopic.JOBS), items)

    def _look_at_schedules(self) -> ScopeLooked:
        views = self._schedules()
        items: dict[Key, Value] = {
            Key(WatchTopic.SCHEDULES, "", view.row.name): view for view in views
        }
        return ScopeLooked(Scope(WatchTopic.SCHEDULES), items)

    async def _look_at_sessions(self) -> ScopeLooked:
        views = await self._sessions.listed("", SESSIONS_MAX)
        items = {Key(WatchTopic.SESSIONS, "", view.client_id): view for view in views}
        return ScopeLooked(Scope(WatchTopic.SESSIONS), items)

    def _look_at_lags(self, group: GroupRow) -> Iterator[ScopeLooked]:
        mark = self._overviews.mark(group.group_id)
        if self._lags.get(group.group_id) is mark:
            return
        self._lags[group.group_id] = mark
        items: dict[Key, Value] = {}
        for lag in self._overviews.lags(group.group_id):
            stream = self._name(lag.stream)
            if stream:
                key = _key(WatchTopic.LAGS, group, stream)
                items[key] = WatchedLag(key.group, stream, lag)
        yield ScopeLooked(Scope(WatchTopic.LAGS, group.group_id), items)

    async def _look_at_lent(self, group: GroupRow, turn: LoopTurn) -> list[ScopeLooked]:
        group_id = group.group_id
        glance = self._registry.glance(group_id)
        mark = _Mark(glance, self._registry.leader_changes(group_id))
        seen, items = self._lent.get(group_id, (_Mark(None, -1), {}))
        if seen.glance is glance and seen.leader_changes == mark.leader_changes:
            return []
        # Before the rows are read: a topic that changes meanwhile has them read again.
        self._lent[group_id] = mark, items
        view = await self._registry.view(group, turn)
        members = self._members(group, view, items)
        grants = self._grants(group, view, items)
        items.clear()
        items.update(members)
        items.update(grants)
        return [
            ScopeLooked(Scope(WatchTopic.MEMBERS, group_id), members),
            ScopeLooked(Scope(WatchTopic.GRANTS, group_id), grants),
        ]

    def _members(
        self, group: GroupRow, view: LeaderView, known: dict[Key, Value]
    ) -> dict[Key, Value]:
        now_ms = self._clock.wall_ms()
        found: dict[Key, Value] = {}
        for member in view.members:
            key = _key(WatchTopic.MEMBERS, group, member.borrower_id.hex())
            found[key] = _member(key, member, known.get(key), now_ms)
        return found

    def _grants(
        self, group: GroupRow, view: LeaderView, known: dict[Key, Value]
    ) -> dict[Key, Value]:
        # Without a leader the start of the state is unknown.
        now_ms = self._clock.wall_ms() if self._registry.glance(group.group_id) else None
        found: dict[Key, Value] = {}
        for stream in view.streams:
            name = self._name(stream.stream)
            if name:
                key = _key(WatchTopic.GRANTS, group, name)
                waits_for = list(filter(None, map(self._name, stream.waits_for)))
                hindrance = hindrance_sentence(stream, waits_for)
                found[key] = _grant(key, stream, known.get(key), now_ms, hindrance)
        return found

    def _name(self, stream: StreamId) -> str:
        """Of a stream; empty where its topic was removed meanwhile."""
        try:
            return str(self._catalogue.name_of(stream))
        except StreamNotFound:
            return ""


_BY_GROUP = frozenset({WatchTopic.MEMBERS, WatchTopic.GRANTS, WatchTopic.LAGS})


_LASTING = attrgetter(
    *(
        each.name
        for each in fields(Overview)
        if each.compare and each.name not in ("arrivals", "acks")
    )
)
"""All fields of a group's overview, except its averages and when it was made."""


def _key(topic: WatchTopic, group: GroupRow, name: str = "") -> Key:
    return Key(topic, group.full_name, name, group.kind == EXCLUSIVE)


def _averaged(overview: Overview, known: Overview | None) -> Overview:
    """The overview with the known averages; else with its own, rounded so that they come to
    rest."""
    if known is not None:
        if _LASTING(overview) == _LASTING(known):
            return known
        return replace(overview, arrivals=known.arrivals, acks=known.acks)
    return replace(overview, arrivals=_tenths(overview.arrivals), acks=_tenths(overview.acks))


def _tenths(rates: Rates) -> Rates:
    return Rates(*(round(each, 1) for each in rates))


def _member(key: Key, member: MemberView, known: object, now_ms: int) -> WatchedMember:
    at_ms = now_ms - member.connected_for_ms
    if isinstance(known, WatchedMember):
        at_ms = known.connected_at_ms
    return WatchedMember(key.group, member.borrower_id, member.client_id, member.streams, at_ms)


def _grant(
    key: Key, stream: StreamView, known: object, now_ms: int | None, hindrance: str
) -> WatchedGrant:
    since_ms = None if now_ms is None else now_ms - stream.state_age_ms
    grant = WatchedGrant(
        group=key.group,
        stream=key.name,
        state=stream.state,
        client_id=stream.client_id,
        grant_epoch=stream.grant_epoch,
        since_ms=since_ms,
        stall=hindrance,
        pinned_to=stream.pinned_to,
    )
    if isinstance(known, WatchedGrant) and known.since_ms is not None and since_ms is not None:
        same = (known.state, known.client_id, known.grant_epoch)
        if same == (grant.state, grant.client_id, grant.grant_epoch):
            return replace(grant, since_ms=known.since_ms)
    return grant
