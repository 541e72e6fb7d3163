"""The findings in a part of a topic, and how two parts are merged.

Invariant: `merged` may group parts in any way, but keeps their order: in every stream the left part
lies before the right one. A partial result has a bound, whatever it covers.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from heapq import nsmallest
from typing import Protocol, Self, TypeVar

from dss_bulk.audits import origins, top_keys
from dss_bulk.audits.origins import Origins
from dss_bulk.audits.top_keys import TopKeys
from dss_bulk.limits import AUDIT_EXAMPLES_MAX

AUDIT_ORDERS_MAX = 4_096
"""How many pairs of a stream and a source are followed in order from chunk to chunk."""


class Check(StrEnum):
    """The kinds of findings."""

    GAPS = "gaps"
    """Offsets without a record and without a reason."""
    DAMAGE = "damage"
    """Records that cannot be read."""
    DUPLICATES = "duplicates"
    """An offset, or an origin, that another record has too."""
    MISROUTED = "misrouted"
    """Records in another partition than their key's."""
    ORDER = "order"
    """Copies that come before an older one of the same key and source."""
    SUBJECTS = "subjects"
    """Subjects that no pattern of the topic meets."""
    LOST = "lost"
    """Offsets without a record, after a loss of power or a kill."""
    TIMES = "times"
    """Records whose time is before that of an older record of the same key."""
    UNEXAMINED = "unexamined"
    """Records beyond a limit, which were not examined."""


PROBLEMS = (
    Check.GAPS,
    Check.DAMAGE,
    Check.DUPLICATES,
    Check.MISROUTED,
    Check.ORDER,
    Check.SUBJECTS,
)
"""The checks that find faults; findings of all others are hints."""


@dataclass(frozen=True, slots=True)
class Found:
    """The findings of one check."""

    count: int = 0
    examples: tuple[str, ...] = ()
    """The first places, by name."""

    def plus(self, other: "Found") -> "Found":
        """The sum of both."""
        return Found(self.count + other.count, first((*self.examples, *other.examples)))


def first(examples: Iterable[str]) -> tuple[str, ...]:
    """The few that a report names."""
    return tuple(nsmallest(AUDIT_EXAMPLES_MAX, set(examples)))


@dataclass(frozen=True, slots=True)
class Amount:
    """The amount of records in one stream."""

    records: int = 0
    bytes: int = 0
    """The bytes of keys and payloads."""

    def plus(self, other: "Amount") -> "Amount":
        """The sum of both."""
        return Amount(self.records + other.records, self.bytes + other.bytes)


class _Sum(Protocol):
    """A result that can be added to others of its type."""

    def plus(self, other: Self) -> Self:
        """The sum of both."""
        ...


K = TypeVar("K")
S = TypeVar("S", bound=_Sum)

Copied = tuple[str, str]
"""A stream, and the source of some of its records."""


@dataclass(frozen=True, slots=True)
class Partial:
    """The result of some ranges."""

    streams: Mapping[str, Amount] = field(default_factory=dict)
    keyless: int = 0
    """Records without a key."""
    found: Mapping[Check, Found] = field(default_factory=dict)
    keys: TopKeys = field(default_factory=TopKeys)
    origins: Origins = field(default_factory=Origins)
    orders: Mapping[Copied, tuple[int, int]] = field(default_factory=dict)
    """The lowest and the highest origin offset."""
    apart: frozenset[Copied] = frozenset()
    """Places where origins fall from one part to the next: whether those of one key do is
    unknown."""

    @property
    def records(self) -> int:
        """How many records were examined."""
        return sum(each.records for each in self.streams.values())

    @property
    def bytes(self) -> int:
        """The bytes of their keys and payloads."""
        return sum(each.bytes for each in self.streams.values())


def merged(left: Partial, right: Partial) -> Partial:
    """The sum of both, with the right one after the left one."""
    orders, apart = _orders(left, right)
    return Partial(
        streams=_sums(left.streams, right.streams),
        keyless=left.keyless + right.keyless,
        found=_sums(left.found, right.found),
        keys=top_keys.merged(left.keys, right.keys),
        origins=origins.merged(left.origins, right.origins),
        orders=orders,
        apart=frozenset(nsmallest(AUDIT_ORDERS_MAX, {*left.apart, *right.apart, *apart})),
    )


def _sums(left: Mapping[K, S], right: Mapping[K, S]) -> dict[K, S]:
    sums = dict(left)
    for key, value in right.items():
        before = sums.get(key)
        sums[key] = value if before is None else before.plus(value)
    return sums


def _orders(left: Partial, right: Partial) -> tuple[dict[Copied, tuple[int, int]], set[Copied]]:
    orders = dict(left.orders)
    apart: set[Copied] = set()
    for copied, (low, high) in right.orders.items():
        before = orders.get(copied)
        if before is None:
            if len(orders) < AUDIT_ORDERS_MAX:
                orders[copied] = (low, high)
            else:
                apart.add(copied)
            continue
        if low < before[1]:
            apart.add(copied)
        orders[copied] = (min(before[0], low), max(before[1], high))
    return orders, apart
