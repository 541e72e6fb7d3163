"""Where the target of a change lies in a stream: an offset, within what the stream holds.

Invariant: a target is at least the first kept record and at most the end. This module reads the
log, and does not know what becomes of the offset.
"""

from dataclasses import dataclass
from typing import assert_never

from dss_core.changes import (
    ByRecords,
    BySpan,
    Target,
    ToEarliest,
    ToLatest,
    ToOffset,
    ToTime,
)
from dss_core.errors import IllegalArgument, OffsetOutOfRange
from dssd.leaders.lag import StreamSurvey
from dssd.log.port import Bounds, Log
from dssd.machines.start_point import OFFSET_MAX


@dataclass(frozen=True, slots=True)
class FoundTarget:
    """A target in a stream."""

    offset: int
    clamped: bool
    """It would lie before the first kept record."""


async def found_target(to: Target, stream: StreamSurvey, log: Log) -> FoundTarget:
    """The offset of the target in the stream.

    Raises:
        OffsetOutOfRange: the stream ends before the offset.
        IllegalArgument: a time is outside what clocks say.
    """
    bounds = log.bounds(stream.view.stream)
    match to:
        case ToEarliest() | ToLatest():
            at = bounds.start if isinstance(to, ToEarliest) else bounds.end
            return FoundTarget(at, clamped=False)
        case ToTime(time_us):
            return await _at_time(time_us, stream, log)
        case ToOffset(offset):
            if offset > bounds.end:
                raise OffsetOutOfRange(
                    offset=offset, start=bounds.start, end=bounds.end, stream=stream.name
                )
            return within(offset, bounds)
        case ByRecords(records):
            return within(stream.view.progress.floor + records, bounds)
        case BySpan(span_ms):
            return await _by_span(span_ms, stream, log)
        case _:
            assert_never(to)


async def _by_span(span_ms: int, stream: StreamSurvey, log: Log) -> FoundTarget:
    stream_id, bounds = stream.view.stream, log.bounds(stream.view.stream)
    if bounds.start == bounds.end:
        return FoundTarget(bounds.end, clamped=False)
    # A group that is at the end has no record at its floor: the last one stands for it.
    at = min(max(stream.view.progress.floor, bounds.start), bounds.end - 1)
    from_us = await log.time_at(stream_id, at)
    if from_us is None:
        return FoundTarget(at, clamped=False)
    return await _at_time(from_us + span_ms * 1_000, stream, log)


async def _at_time(time_us: int, stream: StreamSurvey, log: Log) -> FoundTarget:
    if not 0 <= time_us <= OFFSET_MAX:
        raise IllegalArgument(argument=f"the time {time_us}", rule="it is since 1970")
    bounds = log.bounds(stream.view.stream)
    offset = await log.locate(stream.view.stream, time_us)
    first_us = await log.time_at(stream.view.stream, bounds.start)
    before_first = first_us is not None and time_us < first_us
    return FoundTarget(max(offset, bounds.start), clamped=before_first and bounds.start > 0)


def within(offset: int, bounds: Bounds) -> FoundTarget:
    """The offset, or the nearest one that the stream has."""
    return FoundTarget(min(max(offset, bounds.start), bounds.end), clamped=offset < bounds.start)
