"""Remembers which origins were seen: an exact set of offsets by stream, to find doubled copies.

::

    orders/0/3   page 0 ████████████████  page 1 ██████▌·········      one bit an offset
    orders/0/4   page 7 ·██·███·█·█·██·█                                no page where nothing is

Invariant: doubles are counted exactly while all pages fit. A record of a page that does not fit
counts as unexamined, never as examined.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import nsmallest

from dss_bulk.limits import AUDIT_EXAMPLES_MAX

AUDIT_ORIGIN_PAGES_MAX = 16_384
"""How many pages of 65,536 origins each an audit remembers to find doubles: 128 MiB, a thousand
million records."""


PAGE_BITS = 16
PAGE_OFFSETS = 1 << PAGE_BITS
PAGE_BYTES = PAGE_OFFSETS // 8

Page = tuple[str, int]
"""A stream, and the number of one of its pages."""

Origin = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Origins:
    """The origins of some records."""

    pages: Mapping[Page, int] = field(default_factory=dict)
    """Which offsets of a page were seen, one bit each."""
    doubles: int = 0
    """Records with the origin of an earlier record."""
    doubled: tuple[Origin, ...] = ()
    """The first few of these records."""
    unexamined: int = 0
    """Records whose origin was not compared with all others."""

    @property
    def records(self) -> int:
        """The number of different origins that were seen."""
        return sum(page.bit_count() for page in self.pages.values())


def merged(left: Origins, right: Origins, pages_max: int = AUDIT_ORIGIN_PAGES_MAX) -> Origins:
    """The union of both; an origin in both is doubled."""
    pages = dict(left.pages)
    doubles, unexamined = left.doubles + right.doubles, left.unexamined + right.unexamined
    doubled = {*left.doubled, *right.doubled}
    for page, seen in right.pages.items():
        before = pages.get(page)
        if before is None:
            if len(pages) < pages_max:
                pages[page] = seen
            else:
                unexamined += seen.bit_count()
            continue
        both = before & seen
        pages[page] = before | seen
        if both:
            doubles += both.bit_count()
            doubled.update(_lowest(page, both))
    return Origins(pages, doubles, lowest(doubled), unexamined)


def lowest(origins: set[Origin]) -> tuple[Origin, ...]:
    """The first few, in order."""
    return tuple(nsmallest(AUDIT_EXAMPLES_MAX, origins))


def _lowest(page: Page, bits: int) -> list[Origin]:
    stream, number = page
    found: list[Origin] = []
    while bits and len(found) < AUDIT_EXAMPLES_MAX:
        low = bits & -bits
        found.append((stream, number * PAGE_OFFSETS + low.bit_length() - 1))
        bits ^= low
    return found
