"""Origin headers: where a record that a bulk job copied came from, and how often it was copied.

::

    dss-origin      orders/0/3@1234     stream and offset of the record that was copied first
    dss-origin-us   1795000000000000    when that was appended, microseconds since 1970
    dss-job         replay-7            the job that made this copy
    dss-hop         1                   how many copies lie between the first record and this one

A copy of a copy keeps the first origin, so consumers can tell doubles by it. Invariant: a record
has each of these headers at most once; hops only rise, and nothing is copied beyond the limit.
"""

from collections.abc import Iterable
from typing import NamedTuple

from dss_core.errors import HopLimit
from dss_core.limits import COPY_HOPS_MAX
from dss_core.rows_layout import Headers

ORIGIN = "dss-origin"
ORIGIN_US = "dss-origin-us"
JOB = "dss-job"
HOP = "dss-hop"
ORIGIN_HEADERS = frozenset({ORIGIN, ORIGIN_US, JOB, HOP})


class Source(NamedTuple):
    """The record that is copied."""

    stream: str
    """TOPIC/ORDINAL/PARTITION."""
    offset: int
    append_time_us: int


def copied_headers(headers: Headers, source: Source, job: str, hops_max: int) -> Headers:
    """The headers of a copy: the user's as they were, then where it came from.

    Raises:
        HopLimit: it was copied too often already.
    """
    known = {name: value for name, value in headers if name in ORIGIN_HEADERS}
    hop = hops_of(headers) + 1
    if hop > min(hops_max, COPY_HOPS_MAX):
        raise HopLimit(record=f"{source.stream}@{source.offset}", hops=hop - 1, limit=hops_max)
    own = tuple((name, value) for name, value in headers if name not in ORIGIN_HEADERS)
    first = known.get(ORIGIN, f"{source.stream}@{source.offset}".encode())
    first_us = known.get(ORIGIN_US, str(source.append_time_us).encode())
    added = ((ORIGIN, first), (ORIGIN_US, first_us), (JOB, job.encode()), (HOP, b"%d" % hop))
    return (*own, *added)


def hops_of(headers: Iterable[tuple[str, bytes]]) -> int:
    """How often the record was copied; 0 where its headers do not say so."""
    for name, value in headers:
        if name == HOP and value.isdigit():
            return int(value)
    return 0
