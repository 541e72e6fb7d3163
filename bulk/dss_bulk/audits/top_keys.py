"""The keys that most records have, in memory that does not grow (Misra and Gries).

Invariant: of each key, the true count lies between `counts` of it, 0 where it is left out, and that
plus `short`. So no key is missed that has more than `short` records, and `short` is at most all
records by one more than the keys that are kept.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

AUDIT_TOP_KEYS_MAX = 64
"""Keys that are counted apart: one with more than a 65th of all records is never missed."""


@dataclass(frozen=True, slots=True)
class TopKeys:
    """Keys by their routing hash."""

    counts: Mapping[int, int] = field(default_factory=dict)
    """At least so many records."""
    names: Mapping[int, bytes] = field(default_factory=dict)
    """Of each of them, the beginning of the key."""
    short: int = 0
    """By how much a count may be too low."""


def merged(left: TopKeys, right: TopKeys) -> TopKeys:
    """Both."""
    counts = dict(left.counts)
    for key, count in right.counts.items():
        counts[key] = counts.get(key, 0) + count
    names = {**right.names, **left.names}
    return kept(TopKeys(counts, names, left.short + right.short))


def kept(keys: TopKeys) -> TopKeys:
    """The largest alone, each less what the largest of the others has."""
    if len(keys.counts) <= AUDIT_TOP_KEYS_MAX:
        return keys
    less = sorted(keys.counts.values(), reverse=True)[AUDIT_TOP_KEYS_MAX]
    counts = {key: count - less for key, count in keys.counts.items() if count > less}
    names = {key: keys.names[key] for key in counts if key in keys.names}
    return TopKeys(counts, names, keys.short + less)
