"""The watch board: the latest value of each item, in the order in which items changed.

A *look* gives all items of a scope as they are now. An item that differs from the look before gets
the next revision; an item that is gone leaves a tombstone. A watcher that knows all up to a
revision gets the items of higher revisions: each once, with its latest value. So a slow watcher
costs nothing but its revision number, and nothing here knows how many watchers there are.

Invariant: all changes that `changes_after` gives after a known revision, applied to the items of
that revision, give the present items. A revision is no longer known once tombstones that it needs
were dropped: its watcher must begin anew. A call takes a bounded time, however much changed.
"""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from typing import NamedTuple, assert_never

WATCH_TOMBSTONES_MAX = 20_000
"""How many tombstones are kept, some 200 bytes each. A watcher that is behind the oldest of them
begins anew."""

WATCH_STALE_MIN = 4_000
"""Stale turns are dropped once there are more of them than of current turns, and more than this: so
each new turn pays for dropping a few."""


class WatchTopic(StrEnum):
    """A kind of item."""

    GROUPS = "groups"
    MEMBERS = "members"
    GRANTS = "grants"
    LAGS = "lags"
    EVENTS = "events"
    OPERATIONS = "operations"
    SESSIONS = "sessions"
    SCHEDULES = "schedules"
    JOBS = "jobs"


class Scope(NamedTuple):
    """The scope of one look: a watch topic; for some topics, of one group only."""

    topic: WatchTopic
    group_id: int = 0


class Key(NamedTuple):
    """Names an item."""

    topic: WatchTopic
    group: str
    """NAME@FILTER; empty where it is of none."""
    name: str
    """The item in the group; empty if it is the group itself."""
    private: bool = False
    """The group belongs to a subscription that nobody shares."""


Value = object
"""The value of an item. It is only compared and passed on."""


@dataclass(frozen=True, slots=True)
class ScopeLooked:
    """All items of a scope, as they are now."""

    scope: Scope
    items: Mapping[Key, Value]


@dataclass(frozen=True, slots=True)
class OnlyThese:
    """A watch topic has these groups and no others."""

    topic: WatchTopic
    group_ids: frozenset[int]


@dataclass(frozen=True, slots=True)
class Forget:
    """Nobody watches: nothing need be kept."""


WatchInput = ScopeLooked | OnlyThese | Forget


@dataclass(frozen=True, slots=True)
class Moved:
    """There is more to tell."""

    revision: int


class Entry(NamedTuple):
    """An item and when it changed last."""

    revision: int
    value: Value


class Turn(NamedTuple):
    """A change or the end of an item; stale once the item changed again."""

    revision: int
    key: Key


class Changes(NamedTuple):
    """Some of what changed."""

    changed: list[tuple[Key, Value]]
    removed: list[Key]
    last: int
    """The changes are complete up to this revision."""


@dataclass(slots=True)
class Board:
    """All watched items. Each watcher keeps a revision of its own."""

    revision: int = 0
    oldest: int = 0
    """A watcher whose revision is lower must begin anew."""
    turns: list[Turn] = field(default_factory=list)
    """By revision, stale ones too."""
    entries: dict[Key, Entry] = field(default_factory=dict)
    gone: dict[Key, int] = field(default_factory=dict)
    """Tombstones, by revision."""
    scopes: dict[Scope, set[Key]] = field(default_factory=dict)


def step(board: Board, given: WatchInput) -> tuple[Board, tuple[Moved, ...]]:
    """Take an input; the old board must not be used any more."""
    before = board.revision
    match given:
        case ScopeLooked(scope, items):
            _look(board, scope, items)
        case OnlyThese(topic, group_ids):
            for scope in [scope for scope in board.scopes if scope.topic is topic]:
                if scope.group_id not in group_ids:
                    _look(board, scope, {})
        case Forget():
            # Nobody may resume, not even from the last revision.
            revision = board.revision + 1
            return Board(revision=revision, oldest=revision), ()
        case _:
            assert_never(given)
    return board, (Moved(board.revision),) if board.revision != before else ()


def is_known(board: Board, revision: int) -> bool:
    """Whether the changes after a revision are known."""
    return board.oldest <= revision <= board.revision


def changes_after(board: Board, after: int, up_to: int, turns_max: int) -> Changes:
    """Items that changed after a revision and up to another, with their present values.

    At most ``turns_max`` turns are looked at. Items that changed again after ``up_to`` come later.
    After 0 it gives all items.
    """
    at = bisect_right(board.turns, after, key=_revision)
    changes = Changes([], [], up_to)
    for revision, key in islice(board.turns, at, at + turns_max):
        if revision > up_to:
            return changes
        entry = board.entries.get(key)
        if entry is not None and entry.revision == revision:
            changes.changed.append((key, entry.value))
        elif board.gone.get(key) == revision:
            changes.removed.append(key)
    more = at + turns_max < len(board.turns)
    return changes._replace(last=board.turns[at + turns_max - 1].revision) if more else changes


def _revision(turn: Turn) -> int:
    return turn.revision


def _look(board: Board, scope: Scope, items: Mapping[Key, Value]) -> None:
    for key in sorted(board.scopes.get(scope, set()) - items.keys()):
        _remove(board, key)
    for key, value in items.items():
        known = board.entries.get(key)
        if known is None or (known.value is not value and known.value != value):
            _put(board, key, value)
    if items:
        board.scopes[scope] = set(items)
    else:
        board.scopes.pop(scope, None)
    if len(board.turns) > 2 * (len(board.entries) + len(board.gone)) + WATCH_STALE_MIN:
        board.turns = [turn for turn in board.turns if _counts(board, turn)]


def _counts(board: Board, turn: Turn) -> bool:
    entry = board.entries.get(turn.key)
    at = board.gone.get(turn.key) if entry is None else entry.revision
    return at == turn.revision


def _turn(board: Board, key: Key) -> int:
    board.revision += 1
    board.turns.append(Turn(board.revision, key))
    return board.revision


def _put(board: Board, key: Key, value: Value) -> None:
    board.gone.pop(key, None)
    board.entries[key] = Entry(_turn(board, key), value)


def _remove(board: Board, key: Key) -> None:
    del board.entries[key]
    board.gone[key] = _turn(board, key)
    if len(board.gone) > WATCH_TOMBSTONES_MAX:
        board.oldest = board.gone.pop(next(iter(board.gone)))
