"""The picture: all data of the dashboard, and how an item changes it.

Invariant: a picture never changes; `step` is total and returns another one. When the watch begins
anew, its items are shown only once all have come, so nobody sees half of them; until then, and
while the daemon is away, the last picture stays.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias, assert_never

from dssctl.top.limits import SAMPLE_TICKS
from dssctl.top.model.courses import Course, coursed
from dssctl.top.model.trends import NOTHING, Sample, Trend, sampled, summed

if TYPE_CHECKING:
    from dss_client import (
        DaemonStatus,
        Event,
        Group,
        Job,
        Operation,
        Schedule,
        SessionSummary,
        Stuck,
        TopicSummary,
        Verdict,
        WatchedGrant,
        WatchedLag,
        WatchedMember,
        WatchUpdate,
    )

EVENTS_KEPT = 500
"""How many events are kept, the newest: ten screens."""


_NONE: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Items:
    """The items of the watch, by its keys."""

    groups: "Mapping[str, Group]" = field(default_factory=dict)
    """By NAME@FILTER, as are the next three."""
    members: "Mapping[str, Mapping[str, WatchedMember]]" = field(default_factory=dict)
    grants: "Mapping[str, Mapping[str, WatchedGrant]]" = field(default_factory=dict)
    lags: "Mapping[str, Mapping[str, WatchedLag]]" = field(default_factory=dict)
    sessions: "Mapping[str, SessionSummary]" = field(default_factory=dict)
    operations: "Mapping[str, Operation]" = field(default_factory=dict)
    jobs: "Mapping[str, Job]" = field(default_factory=dict)


_KEPT = frozenset(each.name for each in fields(Items))
WATCHED = (*sorted(_KEPT), "events")
"""The wanted topics; items of others, such as in a recording, are ignored."""


@dataclass(frozen=True, slots=True)
class Away:
    """The daemon does not answer."""

    since_ms: int
    reason: str


@dataclass(frozen=True, slots=True)
class Picture:
    """All that is known."""

    now_ms: int = 0
    """The time of the last tick."""
    ticks: int = 0
    complete: bool = False
    """Whether the watch has reported everything at least once."""
    away: Away | None = None
    items: Items = field(default_factory=Items)
    coming: Items | None = None
    """Items of a watch that begins anew, and has not reported everything yet."""
    events: "tuple[Event, ...]" = ()
    """The events, the newest last."""
    status: "DaemonStatus | None" = None
    topics: "Mapping[str, TopicSummary]" = field(default_factory=dict)
    schedules: "Mapping[str, Schedule]" = field(default_factory=dict)
    stuck: "tuple[Stuck, ...]" = ()
    """What was stuck when the daemon was asked last."""
    found: "tuple[Verdict, ...]" = ()
    """The daemon's findings at that time, good and bad."""
    trends: Mapping[str, Trend] = field(default_factory=dict)
    """The trends of groups."""
    total: Trend = ()
    courses: Mapping[int, Course] = field(default_factory=dict)
    """The courses of unfinished jobs, by number: a name may belong to another job by now."""


@dataclass(frozen=True, slots=True)
class Updated:
    """An update of the watch came."""

    update: "WatchUpdate"


@dataclass(frozen=True, slots=True)
class Happened:
    """Events from before the watch began."""

    events: "tuple[Event, ...]"


@dataclass(frozen=True, slots=True)
class Stood:
    """The daemon reported its status."""

    status: "DaemonStatus"


@dataclass(frozen=True, slots=True)
class Listed:
    """The lists of topics and schedules."""

    topics: "tuple[TopicSummary, ...]"
    schedules: "tuple[Schedule, ...]" = ()


@dataclass(frozen=True, slots=True)
class Stands:
    """What is stuck, and further findings."""

    stuck: "tuple[Stuck, ...]"
    found: "tuple[Verdict, ...]" = ()


@dataclass(frozen=True, slots=True)
class Lost:
    """The daemon did not answer."""

    at_ms: int
    reason: str


@dataclass(frozen=True, slots=True)
class Ticked:
    """Time has passed."""

    at_ms: int


Told: TypeAlias = Updated | Happened | Stood | Listed | Stands | Lost | Ticked


def step(picture: Picture, told: Told) -> Picture:
    """The picture after an item."""
    match told:
        case Updated(update):
            return _updated(picture, update)
        case Happened(events):
            return replace(picture, events=_with_events(picture.events, events))
        case Stood(status):
            return replace(picture, status=status, away=None)
        case Listed() | Stands():
            return _listed(picture, told)
        case Lost(at_ms, reason):
            since_ms = picture.away.since_ms if picture.away else at_ms
            return replace(picture, away=Away(since_ms, reason))
        case Ticked(at_ms):
            return _ticked(picture, at_ms)
        case _:
            assert_never(told)


def _listed(picture: Picture, told: Listed | Stands) -> Picture:
    if isinstance(told, Stands):
        return replace(picture, stuck=told.stuck, found=told.found)
    topics = {each.topic.name: each for each in told.topics}
    return replace(picture, topics=topics, schedules={each.name: each for each in told.schedules})


def _updated(picture: Picture, update: "WatchUpdate") -> Picture:
    before = Items() if update.anew else picture.coming or picture.items
    items, events = _applied(before, update)
    kept = _with_events(picture.events, events) if events else picture.events
    anew = update.anew or picture.coming is not None
    if anew and not update.complete:
        return replace(picture, coming=items, events=kept)
    complete = picture.complete or update.complete
    return replace(picture, items=items, coming=None, events=kept, complete=complete)


def _applied(items: Items, update: "WatchUpdate") -> "tuple[Items, tuple[Event, ...]]":
    """The items after an update, and the events in it."""
    draft = _Draft(items)
    events: list[Any] = []
    for key, value in update.changed:
        if key.topic == "events":
            events.append(value)
        elif key.topic in _KEPT:
            draft.of(key.topic, key.group)[key.name or key.group] = value
    for key in update.removed:
        if key.topic in _KEPT:
            draft.of(key.topic, key.group).pop(key.name or key.group, None)
    return draft.done(), tuple(events)


class _Draft:
    """Copies each part that an update touches, once."""

    __slots__ = ("_flat", "_items", "_nested")

    def __init__(self, items: Items) -> None:
        self._items = items
        self._flat: dict[str, dict[str, Any]] = {}
        self._nested: dict[str, dict[str, Mapping[str, Any]]] = {}

    def of(self, topic: str, group: str) -> dict[str, Any]:
        """A copy of the part that an item belongs to."""
        if topic not in _OF_A_GROUP:
            if topic not in self._flat:
                self._flat[topic] = dict(getattr(self._items, topic))
            return self._flat[topic]
        by_group = self._nested.setdefault(topic, {})
        if group not in by_group:
            by_group[group] = dict(getattr(self._items, topic).get(group, _NONE))
        copy = by_group[group]
        assert isinstance(copy, dict)
        return copy

    def done(self) -> Items:
        changed: dict[str, Any] = dict(self._flat)
        for topic, by_group in self._nested.items():
            whole = {**getattr(self._items, topic), **by_group}
            changed[topic] = {group: held for group, held in whole.items() if held}
        return replace(self._items, **changed)


_OF_A_GROUP = frozenset({"members", "grants", "lags"})


def _with_events(known: "tuple[Event, ...]", more: "tuple[Event, ...]") -> "tuple[Event, ...]":
    by_number = {event.number: event for event in (*known, *more)}
    ordered = sorted(by_number)[-EVENTS_KEPT:]
    return tuple(by_number[number] for number in ordered)


def _ticked(picture: Picture, at_ms: int) -> Picture:
    ticks = picture.ticks + 1
    picture = replace(picture, now_ms=at_ms, ticks=ticks)
    if picture.away is not None or not picture.complete or ticks % SAMPLE_TICKS:
        return picture
    samples = {name: _sample(group) for name, group in picture.items.groups.items()}
    trends = {
        name: sampled(picture.trends.get(name, ()), sample) for name, sample in samples.items()
    }
    total = sampled(picture.total, summed(list(samples.values())))
    courses = {
        job.job_id: coursed(picture.courses.get(job.job_id, ()), job, at_ms)
        for job in picture.items.jobs.values()
        if not job.has_ended
    }
    return replace(picture, trends=trends, total=total, courses=courses)


def _sample(group: "Group") -> Sample:
    if not group.lag and not group.arrivals.minute and not group.acks.minute:
        return NOTHING
    return Sample(group.lag, group.arrivals.minute, group.acks.minute)
