"""The `Read` call of a daemon in memory.

Invariant: a record that the request asks for leaves once, in order within its stream.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping

from dss_api.v1 import log_pb2, types_pb2
from dss_client.testing.memory_stream import MemoryStream
from dss_core.errors import IllegalArgument, OffsetOutOfRange, StreamNotFound
from dss_core.filters import TopicFilter
from dss_core.ids import StreamName
from dss_core.progress import complement

_OFFSET_END = 1 << 63


async def replies(
    request: log_pb2.ReadRequest, all_streams: Mapping[str, MemoryStream], grown: asyncio.Condition
) -> AsyncIterator[log_pb2.ReadReply]:
    """The streams, then their frames; one that follows waits for `grown`. `end_time_us` is ignored.

    Raises:
        IllegalFilter, IllegalName: the filter or the stream is misspelt.
        StreamNotFound: there is no such stream.
        IllegalArgument, OffsetOutOfRange: the start does not fit.
    """
    streams = _streams(request, all_streams)
    everything = request.HasField("stream") and not request.filter
    matching = TopicFilter.parse("#" if everything else request.filter)
    offsets = _starts(request, streams)
    left = request.records_max if request.HasField("records_max") else _OFFSET_END
    starts = [offsets[name] for name in streams]
    yield log_pb2.ReadReply(streams=list(streams), starts=starts)
    while left:
        for name, stream in streams.items():
            for base, frame, mask in stream.visible(matching, ((0, offsets[name]),)):
                reply, records = _reply(name, base, frame, mask, left)
                left -= records
                if records:
                    yield reply
            offsets[name] = stream.end
        if not request.follow:
            return
        async with grown:
            await grown.wait_for(lambda: any(s.end > offsets[n] for n, s in streams.items()))


def _streams(
    request: log_pb2.ReadRequest, all_streams: Mapping[str, MemoryStream]
) -> Mapping[str, MemoryStream]:
    if request.HasField("stream"):
        name = str(StreamName.parse(request.stream))
        if name not in all_streams:
            raise StreamNotFound(stream=name)
        return {name: all_streams[name]}
    wanted = TopicFilter.parse(request.filter)
    return {name: each for name, each in all_streams.items() if each.pattern.overlaps(wanted)}


def _starts(request: log_pb2.ReadRequest, streams: Mapping[str, MemoryStream]) -> dict[str, int]:
    match request.start.WhichOneof("start"):
        case "now":
            return {name: stream.end for name, stream in streams.items()}
        case "offset":
            return {_only(streams): _checked(request.start.offset, streams)}
        case _:
            return dict.fromkeys(streams, 0)


def _only(streams: Mapping[str, MemoryStream]) -> str:
    if len(streams) != 1:
        rule = f"an offset is that of a single stream, and {len(streams)} are read"
        raise IllegalArgument(argument="start", rule=rule)
    return next(iter(streams))


def _checked(offset: int, streams: Mapping[str, MemoryStream]) -> int:
    stream = streams[_only(streams)]
    if offset > stream.end:
        raise OffsetOutOfRange(offset=offset, start=0, end=stream.end, stream=stream.name)
    return offset


def _reply(
    name: str, base: int, frame: bytes, mask: tuple[tuple[int, int], ...], most: int
) -> tuple[log_pb2.ReadReply, int]:
    """An answer with at most so many records, and their number."""
    from dss_core.frame import read_header

    end = base + read_header(frame).records
    kept = [at for low, high in complement(mask, base, end) for at in range(low, high)]
    if len(kept) > most:
        mask = (*mask, (kept[most], end))
    ranges = [types_pb2.Range(start=low, end=high) for low, high in mask if low < high]
    return log_pb2.ReadReply(stream=name, frames=frame, mask=ranges), min(len(kept), most)
