"""What is watched: the latest value of each item, in the order in which items changed.

A *look* tells all items of a scope as they are now. What differs from the look before takes the
next revision; what is missing leaves a tombstone. Whoever was told all up to a revision is told
what has a higher one: each item once, as it is then. So a slow watcher costs nothing but its
number, and nothing here knows how many watchers there are.

Invariant: `changes_since` of a revision, applied to the items of that revision, gives the items of
now. Where tombstones were dropped that would be needed, it answers None: one must begin anew.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import takewhile
from typing import NamedTuple, assert_never

from dssd.limits import WATCH_TOMBSTONES_MAX


class WatchTopic(StrEnum):
    """A kind of item."""

    GROUPS = "groups"
    MEMBERS = "members"
    GRANTS = "grants"
    LAGS = "lags"
    EVENTS = "events"
    OPERATIONS = "operations"
    SESSIONS = "sessions"


class Scope(NamedTuple):
    """What one look tells of: a topic, of some topics for one group."""

    topic: WatchTopic
    group_id: int = 0


class Key(NamedTuple):
    """Names an item."""

    topic: WatchTopic
    group: str
    """NAME@FILTER; empty where it is of none."""
    name: str
    """In the group; empty where it is the group."""
    private: bool = False
    """It is of a subscription that nobody shares."""


Value = object
"""Of an item. It is compared and passed on, nothing else."""


@dataclass(frozen=True, slots=True)
class Looked:
    """All items of a scope, as they are now."""

    scope: Scope
    items: Mapping[Key, Value]


@dataclass(frozen=True, slots=True)
class OnlyThese:
    """Of a topic there are these groups and no others."""

    topic: WatchTopic
    group_ids: frozenset[int]


@dataclass(frozen=True, slots=True)
class Forget:
    """Nobody watches: nothing need be kept."""


WatchInput = Looked | OnlyThese | Forget


@dataclass(frozen=True, slots=True)
class Moved:
    """There is more to tell."""

    revision: int


class Entry(NamedTuple):
    """An item and when it changed last."""

    revision: int
    value: Value


class Change(NamedTuple):
    """An item that changed, or went."""

    revision: int
    key: Key


@dataclass(slots=True)
class Board:
    """All that is watched. Of those that look at it, each keeps a revision."""

    revision: int = 0
    oldest: int = 0
    """Who was told less than this must begin anew."""
    entries: dict[Key, Entry] = field(default_factory=dict)
    """By revision."""
    gone: dict[Key, int] = field(default_factory=dict)
    """Tombstones, by revision."""
    scopes: dict[Scope, set[Key]] = field(default_factory=dict)


def step(board: Board, given: WatchInput) -> tuple[Board, tuple[Moved, ...]]:
    """Take an input; the board is given away."""
    before = board.revision
    match given:
        case Looked(scope, items):
            _look(board, scope, items)
        case OnlyThese(topic, group_ids):
            for scope in [scope for scope in board.scopes if scope.topic is topic]:
                if scope.group_id not in group_ids:
                    _look(board, scope, {})
        case Forget():
            # Nobody may resume, not even from the revision that was the last.
            revision = board.revision + 1
            return Board(revision=revision, oldest=revision), ()
        case _:
            assert_never(given)
    return board, (Moved(board.revision),) if board.revision != before else ()


def changes_since(board: Board, revision: int) -> list[Change] | None:
    """What changed after a revision, in that order; None: one must begin anew.

    After 0 it is all that there is.
    """
    if revision and not board.oldest <= revision <= board.revision:
        return None
    found = [Change(at, key) for at, key in _newer(board, revision)]
    if revision:
        gone = takewhile(lambda each: each[1] > revision, reversed(board.gone.items()))
        found += [Change(at, key) for key, at in gone]
        found.sort()
    else:
        found.reverse()
    return found


def _newer(board: Board, revision: int) -> Iterator[tuple[int, Key]]:
    for key, entry in reversed(board.entries.items()):
        if entry.revision <= revision:
            return
        yield entry.revision, key


def _look(board: Board, scope: Scope, items: Mapping[Key, Value]) -> None:
    for key in sorted(board.scopes.get(scope, set()) - items.keys()):
        _remove(board, key)
    for key, value in items.items():
        known = board.entries.get(key)
        if known is None or known.value != value:
            _put(board, key, value)
    if items:
        board.scopes[scope] = set(items)
    else:
        board.scopes.pop(scope, None)


def _put(board: Board, key: Key, value: Value) -> None:
    board.revision += 1
    board.gone.pop(key, None)
    board.entries.pop(key, None)  # it comes to stand last
    board.entries[key] = Entry(board.revision, value)


def _remove(board: Board, key: Key) -> None:
    board.revision += 1
    del board.entries[key]
    board.gone[key] = board.revision
    if len(board.gone) > WATCH_TOMBSTONES_MAX:
        eldest = next(iter(board.gone))
        board.oldest = board.gone.pop(eldest)
