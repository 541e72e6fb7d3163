"""Finds the offsets between two times, for each stream of a topic.

Invariant: the offsets are kept records at the time of the search, and older storage topics come
first. Times are append times; a stream's never fall.
"""

from collections.abc import AsyncIterator
from typing import NamedTuple

from dss_core.ids import StreamId
from dssd.log.port import Log
from dssd.loop_yield import LoopTurn
from dssd.topics.model import Topic


class Located(NamedTuple):
    """A part of a stream, perhaps an empty one."""

    stream: StreamId
    start: int
    end: int
    bytes: int
    """About."""


async def located(
    log: Log, topic: Topic, start_us: int | None, end_us: int | None
) -> AsyncIterator[Located]:
    """The records appended from one time on and before another; no time is no bound.

    Raises:
        StreamNotFound: the topic was removed meanwhile.
    """
    turn = LoopTurn()
    for stream in topic.streams():
        await turn.give_way()
        bounds = log.bounds(stream)
        start, end = bounds.start, bounds.end
        if start_us is not None:
            start = max(start, await log.locate(stream, start_us))
        if end_us is not None:
            end = min(end, await log.locate(stream, end_us))
        end = max(start, end)
        size = bounds.bytes * (end - start) // max(1, bounds.end - bounds.start)
        yield Located(stream, start, end, size)
