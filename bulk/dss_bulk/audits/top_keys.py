"""The keys with the most records, in bounded memory (Misra and Gries).

Invariant: the true count of each key lies between its `counts`, 0 if it is left out, and that plus
`short`. So no key with more than `short` records is missed, and `short` is at most the number of
all records divided by one more than the number of kept keys.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

AUDIT_TOP_KEYS_MAX = 64
"""How many keys are counted: one with more than a 65th of all records is never missed."""


@dataclass(frozen=True, slots=True)
class TopKeys:
    """Keys by their routing hash."""

    counts: Mapping[int, int] = field(default_factory=dict)
    """The least number of records of each kept key."""
    names: Mapping[int, bytes] = field(default_factory=dict)
    """The beginning of each kept key."""
    short: int = 0
    """By how much each count may be too low."""


def merged(left: TopKeys, right: TopKeys) -> TopKeys:
    """The sum of both."""
    counts = dict(left.counts)
    for key, count in right.counts.items():
        counts[key] = counts.get(key, 0) + count
    names = {**right.names, **left.names}
    return kept(TopKeys(counts, names, left.short + right.short))


def kept(keys: TopKeys) -> TopKeys:
    """Keep the largest counts, each reduced by the largest of the others."""
    if len(keys.counts) <= AUDIT_TOP_KEYS_MAX:
        return keys
    less = sorted(keys.counts.values(), reverse=True)[AUDIT_TOP_KEYS_MAX]
    counts = {key: count - less for key, count in keys.counts.items() if count > less}
    names = {key: keys.names[key] for key in counts if key in keys.names}
    return TopKeys(counts, names, keys.short + less)
