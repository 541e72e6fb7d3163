"""Where each stream of a new group begins.

A start is resolved once, when the group is declared, over the streams that its filter selects
then; streams that are born later begin at 0. It knows the log, not the store.
"""

from dss_core.errors import IllegalArgument, OffsetOutOfRange
from dss_core.filters import TopicFilter
from dss_core.ids import StreamId
from dssd.core.start import AtOffset, AtTime, Earliest, Now, StartPoint
from dssd.log.port import Log
from dssd.topics.catalogue import Catalogue


async def resolved_start(
    start: StartPoint, wanted: TopicFilter, catalogue: Catalogue, log: Log
) -> dict[StreamId, int]:
    """The first offset of each stream that the filter selects.

    Raises:
        IllegalArgument: an offset, and not exactly one stream.
        OffsetOutOfRange: the stream does not hold the offset.
    """
    streams = [stream for topic in catalogue.meeting(wanted) for stream in topic.streams()]
    match start:
        case Now():
            return {stream: log.bounds(stream).end for stream in streams}
        case Earliest():
            return {stream: log.bounds(stream).start for stream in streams}
        case AtTime(time_us):
            return {stream: await log.locate(stream, time_us) for stream in streams}
        case AtOffset(offset):
            return {_only(streams): _checked(offset, _only(streams), catalogue, log)}


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
