"""Resolves the target of a change in a stream to an offset that the stream holds.

A span, such as 15 minutes, is resolved to one time for each topic, counted from the newest record
at a floor of the group. So a rewind by 15 minutes reopens no storage topic that ended before.

Invariant: a target is at least the first kept record and at most the end. This module reads the
log, and does not know what becomes of the offset.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from dss_core.changes import (
    ByRecords,
    ToEarliest,
    ToLatest,
    ToOffset,
    ToTime,
)
from dss_core.errors import IllegalArgument, OffsetOutOfRange
from dssd.leaders.lag import StreamSurvey
from dssd.log.port import Bounds, Log
from dssd.loop_yield import LoopTurn
from dssd.machines.start_point import OFFSET_MAX


@dataclass(frozen=True, slots=True)
class FoundTarget:
    """A target in a stream."""

    offset: int
    clamped: bool
    """The target lies before the first kept record, and was raised to it."""


Placed: TypeAlias = ToEarliest | ToLatest | ToTime | ToOffset | ByRecords
"""A target that is resolved in each stream by itself."""


async def found_target(to: Placed, stream: StreamSurvey, log: Log) -> FoundTarget:
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
        case _:
            assert_never(to)


async def times_of_span(
    span_ms: int, streams: Iterable[StreamSurvey], log: Log
) -> dict[str, ToTime | ByRecords]:
    """The time that a span leads to, by topic; left out if no record has a time."""
    stands_us: dict[str, int] = {}
    turn = LoopTurn()
    for stream in streams:
        await turn.give_way()
        topic, at_us = stream.name.topic, await _floor_us(stream, log)
        stands_us[topic] = max(stands_us.get(topic, -1), at_us)
    return {
        topic: ByRecords(0) if at_us < 0 else ToTime(at_us + span_ms * 1_000)
        for topic, at_us in stands_us.items()
    }


async def _floor_us(stream: StreamSurvey, log: Log) -> int:
    """When the record at the floor of a stream was appended; -1: unknown."""
    bounds = log.bounds(stream.view.stream)
    if bounds.start == bounds.end:
        return -1
    # A group that is at the end has no record at its floor: the last one stands for it.
    at = min(max(stream.view.progress.floor, bounds.start), bounds.end - 1)
    at_us = await log.time_at(stream.view.stream, at)
    return -1 if at_us is None else at_us


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
