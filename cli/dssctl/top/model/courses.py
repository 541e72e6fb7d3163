"""The courses of bulk jobs over the last minutes: their pace, and when they will be done.

Invariant: a course is a bounded list of points in the order of their times; a pace needs at least
two points, and a job that stands still has none.
"""

from typing import TYPE_CHECKING, NamedTuple

from dssctl.top.limits import TREND_SAMPLES

if TYPE_CHECKING:
    from dss_client import Job


class Point(NamedTuple):
    """How much of a job was published at one moment."""

    at_ms: int
    chunks: int
    records: int
    bytes: int


Course = tuple[Point, ...]


class Pace(NamedTuple):
    """How much a job publishes a second, on average over its course."""

    chunks_s: float
    records_s: float
    bytes_s: float


def coursed(course: Course, job: "Job", at_ms: int) -> Course:
    """The course with one more point, without the oldest if there are too many."""
    point = Point(at_ms, job.published, job.records, job.bytes)
    return (*course[1 - TREND_SAMPLES :], point)


def pace(course: Course) -> Pace | None:
    """The pace; None while it is unknown."""
    if len(course) < 2 or course[-1].at_ms <= course[0].at_ms:
        return None
    first, last = course[0], course[-1]
    seconds = (last.at_ms - first.at_ms) / 1_000
    return Pace(
        (last.chunks - first.chunks) / seconds,
        (last.records - first.records) / seconds,
        (last.bytes - first.bytes) / seconds,
    )


def left_ms(job: "Job", at: Pace | None) -> int | None:
    """Time until the job is done at this pace; None if that is unknown."""
    if at is None or at.chunks_s <= 0 or job.has_ended:
        return None
    return round((job.chunks - job.published) / at.chunks_s * 1_000)
