"""How rows are addressed, and whether a precondition holds: the same for every adapter.

This module must not know where rows are kept.
"""

from collections.abc import Callable, Iterable
from operator import attrgetter

from dssd.store.port import (
    Absent,
    Exists,
    Key,
    Precondition,
    Put,
    Versioned,
    VersionIs,
    Write,
)
from dssd.store.rows import KINDS, Row


def _key_getter(kind: type[Row]) -> Callable[[Row], Key]:
    if len(kind.KEY) > 1:
        return attrgetter(*kind.KEY)
    only = attrgetter(kind.KEY[0])
    return lambda row: (only(row),)


KEY_GETTERS = {kind: _key_getter(kind) for kind in KINDS}
"""How to take the key out of a row."""

KNOWN = frozenset(KINDS)


def key_of(row: Row) -> Key:
    """The key of a row."""
    return KEY_GETTERS[type(row)](row)


def check_commit(writes: Iterable[Write], preconditions: Iterable[Precondition]) -> None:
    """Assert that every kind has a table and every key has all its fields."""
    for write in writes:
        if isinstance(write, Put):
            assert type(write.row) in KNOWN, write
        else:
            check_key(write.kind, write.key)
    for precondition in preconditions:
        check_key(precondition.kind, precondition.key)


def check_key(kind: type[Row], key: Key) -> None:
    """Assert that this can be the key of a row."""
    assert kind in KNOWN, kind
    assert len(key) == len(kind.KEY), (kind.__name__, key)


def check_scan(kind: type[Row], prefix: Key, after: Key | None, limit: int) -> None:
    """Assert that the arguments of a scan fit together."""
    assert kind in KNOWN, kind
    assert len(prefix) <= len(kind.KEY), (kind.__name__, prefix)
    assert limit > 0, limit
    if after is not None:
        check_key(kind, after)
        assert after[: len(prefix)] == prefix, (prefix, after)


def holds(precondition: Precondition, version: int | None) -> bool:
    """Whether a precondition holds for a row with this version; None: there is no row."""
    match precondition:
        case Absent():
            return version is None
        case Exists():
            return version is not None
        case VersionIs(version=wanted):
            return version == wanted


def failed_first(
    preconditions: tuple[Precondition, ...],
    current: Callable[[Precondition], Versioned[Row] | None],
) -> tuple[Precondition, Versioned[Row] | None] | None:
    """The first precondition that does not hold, with the row as it is; None if all hold."""
    for precondition in preconditions:
        found = current(precondition)
        if not holds(precondition, None if found is None else found.version):
            return precondition, found
    return None
