"""How bulk jobs went over the last minutes: how fast they are, and when they are done.

Invariant: a course is a bounded row of points in the order of their times; a pace is told only of
two points at least, and never of a job that stood still as if it moved.
"""

from typing import TYPE_CHECKING, NamedTuple

from dssctl.top.limits import TREND_SAMPLES

if TYPE_CHECKING:
    from dss_client import Job


class Point(NamedTuple):
    """What of a job was published at one moment."""

    at_ms: int
    chunks: int
    records: int
    bytes: int


Course = tuple[Point, ...]


class Pace(NamedTuple):
    """What a job publishes a second, on average of its course."""

    chunks_s: float
    records_s: float
    bytes_s: float


def coursed(course: Course, job: "Job", at_ms: int) -> Course:
    """The course with one point more, without the oldest where there are too many."""
    point = Point(at_ms, job.published, job.records, job.bytes)
    return (*course[1 - TREND_SAMPLES :], point)


def pace(course: Course) -> Pace | None:
    """How fast it goes; None where that is not known yet."""
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
    """Until it is done at this pace; None where nobody knows."""
    if at is None or at.chunks_s <= 0 or job.has_ended:
        return None
    return round((job.chunks - job.published) / at.chunks_s * 1_000)
