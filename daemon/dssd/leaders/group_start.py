"""Where each stream of a new group begins.

A start is resolved once, when the group is declared, for the streams that its filter selects at
that moment; streams created later begin at 0. A start at an offset means the stream that is written
to; sealed streams lie before it. It knows the log, not the store.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import assert_never

from dss_core.errors import IllegalArgument, OffsetOutOfRange, StreamNotFound
from dss_core.filters import TopicFilter
from dss_core.ids import StreamId
from dssd.log.port import Log
from dssd.loop_yield import LoopTurn
from dssd.machines.start_point import AtOffset, AtTime, Earliest, Now, StartPoint
from dssd.topics.catalogue import Catalogue, Topic


async def resolved_start(
    start: StartPoint, wanted: TopicFilter, catalogue: Catalogue, log: Log
) -> dict[StreamId, int]:
    """The first offset of each stream that the filter selects.

    Raises:
        IllegalArgument: the start is an offset, and not exactly one stream is written to.
        OffsetOutOfRange: the stream does not hold the offset.
    """
    topics = catalogue.meeting(wanted)
    if isinstance(start, AtOffset):
        return _at_offset(start.offset, topics, catalogue, log)
    resolved: dict[StreamId, int] = {}
    turn = LoopTurn()
    for topic in topics:
        # Newest first: if the topic switches meanwhile, no record is skipped that was written after
        # what is still to come.
        for stream in reversed(topic.streams()):
            await turn.give_way()
            with suppress(StreamNotFound):  # its topic was removed meanwhile
                resolved[stream] = await _first(start, stream, log)
    return resolved


async def _first(start: Now | Earliest | AtTime, stream: StreamId, log: Log) -> int:
    match start:
        case Now():
            return log.bounds(stream).end
        case Earliest():
            return log.bounds(stream).start
        case AtTime(time_us):
            return await log.locate(stream, time_us)
        case _:
            assert_never(start)


def _at_offset(
    offset: int, topics: Sequence[Topic], catalogue: Catalogue, log: Log
) -> dict[StreamId, int]:
    stream = _only([stream for topic in topics for stream in topic.producing.streams()])
    sealed = [part for topic in topics for part in topic.storage_topics if part.ends is not None]
    passed = {each: log.bounds(each).end for part in sealed for each in part.streams()}
    return {**passed, stream: _checked(offset, stream, catalogue, log)}


def _only(streams: list[StreamId]) -> StreamId:
    if len(streams) != 1:
        raise IllegalArgument(
            argument="start",
            rule=f"an offset needs a filter that selects one stream; this selects {len(streams)}",
        )
    return streams[0]


def _checked(offset: int, stream: StreamId, catalogue: Catalogue, log: Log) -> int:
    bounds = log.bounds(stream)
    if not bounds.start <= offset <= bounds.end:
        raise OffsetOutOfRange(
            offset=offset, start=bounds.start, end=bounds.end, stream=catalogue.name_of(stream)
        )
    return offset
