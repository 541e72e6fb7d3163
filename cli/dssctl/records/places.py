"""Where in a topic to look: spans of its streams, by offset, by time, by key.

Invariant: a span lies inside what its stream kept when the topic was described.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dss_core.errors import OffsetNotWritten, StreamDamaged, StreamNotFound
from dss_core.ids import StreamName
from dss_core.routing import Router, key_hash, partition_of
from dss_core.times import Moment, parse_time, text_of_us

if TYPE_CHECKING:
    from dss_client import Client, Topic

STREAMS_AT_ONCE = 16
"""Streams of a topic that are looked at concurrently; one after the other, a thousand streams would
take a thousand round trips."""


@dataclass(frozen=True, slots=True)
class Span:
    """Offsets of a stream, the end not included."""

    stream: str
    start: int
    end: int
    kept_from: int
    """The first offset that the stream keeps."""

    @property
    def length(self) -> int:
        """How many offsets, as many records at most."""
        return max(self.end - self.start, 0)


def topic_and_stream(named: str, stream: str | None) -> tuple[str, str | None]:
    """The topic, and the one stream that is meant, if any; ``orders/0/3`` names both.

    Raises:
        IllegalName: it is neither a topic nor a stream.
        StreamNotFound: the stream is of another topic.
    """
    if "/" in named:
        return StreamName.parse(named).topic, stream or named
    if stream is not None and StreamName.parse(stream).topic != named:
        raise StreamNotFound(stream=stream)
    return named, stream


async def spans_of(
    client: "Client", topic_name: str, stream: str | None, key: bytes | None = None
) -> list[Span]:
    """All that the topic keeps: of one stream, or of those where a key may be.

    Raises:
        TopicNotFound, StreamNotFound: there is none.
    """
    topic = await client.topics.describe(topic_name)
    spans = _spans(topic, key)
    if stream is None:
        return spans
    wanted = str(StreamName.parse(stream))
    found = [span for span in spans if span.stream == wanted]
    if not found and wanted not in {span.stream for span in _spans(topic, None)}:
        raise StreamNotFound(stream=stream)
    return found


def _spans(topic: "Topic", key: bytes | None) -> list[Span]:
    hashed = None if key is None else key_hash(key)
    return [
        Span(
            str(StreamName(topic.name, part.ordinal, each.partition)),
            each.start,
            each.end,
            each.start,
        )
        for part in topic.storage_topics
        for each in part.streams
        if hashed is None
        or each.partition
        == partition_of(Router(topic.router), hashed, part.partitions, part.factor)
    ]


def from_offset(span: Span, offset: int) -> Span:
    """What of the span lies at the offset and behind.

    Raises:
        OffsetNotWritten: the stream ends before it.
    """
    if offset >= span.end:
        command = f"dssctl records peek {span.stream}"
        raise OffsetNotWritten(stream=span.stream, end=span.end, offset=offset, command=command)
    return replace(span, start=max(offset, span.start))


async def at_once(spans: Sequence[Span], look_at: Callable[[Span], Awaitable[None]]) -> None:
    """Look at some of the spans at a time, and at none that is empty.

    Raises:
        DssError: one look failed; the others end.
    """
    left = [span for span in reversed(spans) if span.length]

    async def look_on() -> None:
        while left:
            await look_at(left.pop())

    try:
        async with asyncio.TaskGroup() as tasks:
            for number in range(min(STREAMS_AT_ONCE, len(left))):
                tasks.create_task(look_on(), name=f"dssctl look {number}")
    except BaseExceptionGroup as failed:
        # One condition is told; the others are of the same trouble.
        raise failed.exceptions[0] from failed


async def between(
    client: "Client", spans: Sequence[Span], since: str | None, until: str | None
) -> list[Span]:
    """What of the spans was appended at the first time or later, and before the other.

    Raises:
        IllegalTime: one is none.
    """
    found: dict[str, Span] = {}

    async def look_at(span: Span) -> None:
        start = span.start if since is None else await _first_at(client, span, since)
        end = span.end if until is None else await _first_at(client, span, until)
        found[span.stream] = replace(span, start=start, end=end)

    await at_once(spans, look_at)
    return [found[span.stream] for span in spans if span.stream in found]


def resolved(time: str | None, now_us: int) -> str | None:
    """A time that means the same at each look.

    Raises:
        IllegalTime: it is none.
    """
    if time is None:
        return None
    parsed = parse_time(time, now_us=now_us)
    if isinstance(parsed, int):
        return text_of_us(parsed)
    return None if parsed is Moment.EARLIEST else text_of_us(now_us)


async def _first_at(client: "Client", span: Span, time: str) -> int:
    """The first record that was appended at the time or later; the end where there is none."""
    found = await first_record(client, span.stream, time)
    return span.end if found is None else min(found, span.end)


async def first_record(client: "Client", stream: str, start: str) -> int | None:
    """The first offset from a start on that has a record, a damaged one too; None: none has."""
    reader = client.read(stream=stream, start=start, records_max=1, on_damage=_unheard)
    try:
        async with aclosing(reader.batches()) as batches:
            async for batch in batches:
                return batch.offsets[0]
    except StreamDamaged as damage:
        return int(damage.fields["offset"])
    return None


def _unheard(_damage: StreamDamaged) -> None:
    """It is told when the records themselves are read."""
