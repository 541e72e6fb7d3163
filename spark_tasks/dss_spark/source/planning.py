"""Decides, on the driver, which offsets a read takes.

Invariant: planned records were kept when they were planned; others are refused, never skipped. Both
ends of every range are fixed here, so each attempt of a task reads the same.
"""

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from dss_client import Client
from dss_client.job_values import SourceRange
from dss_client.record import moment
from dss_client.topics import LocatedRange, Topic
from dss_core.errors import IllegalArgument, OffsetOutOfRange, StreamNotFound
from dss_core.ids import StreamName
from dss_core.routing import Router, key_hash, partition_of
from dss_core.times import parse_time
from dss_spark.source.conditions import Bounds, Conditions
from dss_spark.source.options import EARLIEST, LATEST, Place, SourceOptions
from dss_spark.source.slices import Sized

DEAD_LETTER_BYTES = 1 << 10
"""Assumed size of a dead letter, of which only the offset is known: it decides the size of
tasks."""

Located = Mapping[str, LocatedRange]
"""By stream, older storage topics first."""


async def planned(client: Client, options: SourceOptions, wanted: Conditions) -> list[Sized]:
    """The ranges with the wanted records, older storage topics first.

    Raises:
        TopicNotFound, StreamNotFound: a name does not exist.
        OffsetOutOfRange: an offset is not kept.
        IllegalTime, IllegalArgument: a start or an end breaks its rule.
    """
    if options.dead_letters:
        # Filters are about records; these offsets and times are those of the queues.
        return [_sized(each) for each in await _dead(client, options)]
    if options.ranges is None:
        found = await _in_topic(client, options, wanted.append_us)
    else:
        found = await _in_ranges(client, options.ranges)
    if wanted.streams is not None:
        found = [each for each in found if each.stream in wanted.streams]
    if wanted.keys is not None:
        topics = {StreamName.parse(each.stream).topic for each in found}
        homes = homes_of([await client.topics.describe(name) for name in topics], wanted.keys)
        found = [each for each in found if each.stream in homes]
    return [_sized(_clipped(each, wanted.offsets)) for each in found]


async def begun(client: Client, options: SourceOptions) -> list[LocatedRange]:
    """Where a query begins in each stream, and what is kept there.

    Raises:
        TopicNotFound, StreamNotFound: a name does not exist.
        OffsetOutOfRange: an offset is not kept.
        IllegalTime, IllegalArgument: the start breaks its rule.
    """
    return await _in_topic(client, replace(options, end=LATEST), Bounds())


async def located_in(client: Client, topic: str, streams: Collection[str] | None) -> Located:
    """All kept records of a topic, or of some of its streams.

    Raises:
        TopicNotFound, StreamNotFound: a name does not exist.
    """
    return _chosen(await client.topics.locate(topic), streams)


def homes_of(topics: Iterable[Topic], keys: Collection[bytes]) -> set[str]:
    """The streams in which records with these keys are."""
    hashes = [key_hash(key) for key in keys]
    return {
        f"{topic.name}/{part.ordinal}/{partition}"
        for topic in topics
        for part in topic.storage_topics
        for partition in {
            partition_of(Router(topic.router), hashed, part.partitions, part.factor)
            for hashed in hashes
        }
    }


async def _in_ranges(client: Client, ranges: Collection[SourceRange]) -> list[LocatedRange]:
    topics = {StreamName.parse(each.stream).topic for each in ranges}
    kept = {each.stream: each for name in topics for each in await client.topics.locate(name)}
    for each in ranges:
        _require_kept(kept, each.stream, each.start, each.end)
    return [_clipped(kept[each.stream], Bounds(each.start, each.end)) for each in ranges]


async def _dead(client: Client, options: SourceOptions) -> list[LocatedRange]:
    """The present dead letters; for a job those of its plan, which have been held since."""
    if options.ranges is None:
        start, end = _died("start", options.start), _died("end", options.end)
        group = options.dead_letters
        found = await client.topics.locate(options.topic, start=start, end=end, dead_letters=group)
        return list(found)
    return [
        LocatedRange(
            each.stream,
            each.storage_topic_id,
            each.partition,
            each.start,
            each.end,
            DEAD_LETTER_BYTES * (each.end - each.start),
        )
        for each in options.ranges
    ]


def _died(name: str, place: Place) -> datetime | None:
    """A bound for the times at which dead letters died.

    Raises:
        IllegalTime, IllegalArgument: it is not a time.
    """
    if place in (EARLIEST, LATEST):
        return None
    time_us = None
    if isinstance(place, str):
        time_us = parse_time(place, now_us=time.time_ns() // 1_000)
    if not isinstance(time_us, int):
        rule = "of dead letters it is a time: of when they died"
        raise IllegalArgument(argument=f"{name} {place}", rule=rule)
    return moment(time_us)


async def _in_topic(
    client: Client, options: SourceOptions, append_us: Bounds
) -> list[LocatedRange]:
    kept = await located_in(client, options.topic, options.streams)
    starts, start_us = placed("start", options.start, kept)
    ends, end_us = placed("end", options.end, kept)
    for stream, offset in (*starts.items(), *ends.items()):
        _require_kept(kept, stream, offset)
    timed = append_us.within(start_us, end_us)
    found = kept
    if timed != Bounds():
        start = None if timed.start is None else moment(timed.start)
        end = None if timed.end is None else moment(timed.end)
        in_time = await client.topics.locate(options.topic, start=start, end=end)
        found = _chosen(in_time, kept.keys())
    return [
        _clipped(each, Bounds(starts.get(stream), ends.get(stream)))
        for stream, each in found.items()
    ]


def placed(name: str, place: Place, kept: Located) -> tuple[Mapping[str, int], int | None]:
    """Offsets by stream, and a time in microseconds, as a start or an end names them.

    Raises:
        StreamNotFound: it names a stream that is not read.
        IllegalTime, IllegalArgument: it names no position.
    """
    if not isinstance(place, str):
        for stream in place:
            if stream not in kept:
                raise StreamNotFound(stream=stream)
        return place, None
    if place == EARLIEST:
        return {stream: each.start for stream, each in kept.items()}, None
    if place == LATEST:
        return {stream: each.end for stream, each in kept.items()}, None
    if place.startswith("=") and place[1:].isdecimal():
        if len(kept) != 1:
            rule = f"an offset is that of a single stream, and {len(kept)} are read"
            raise IllegalArgument(argument=f"{name} {place}", rule=rule)
        return dict.fromkeys(kept, int(place[1:])), None
    time_us = parse_time(place, now_us=time.time_ns() // 1_000)
    if not isinstance(time_us, int):
        raise IllegalArgument(
            argument=f"{name} {place}",
            rule=f"{EARLIEST}, {LATEST}, a time, or offsets by stream",
        )
    return {}, time_us


def _chosen(located: Iterable[LocatedRange], streams: Collection[str] | None) -> Located:
    every = {each.stream: each for each in located}
    if streams is None:
        return every
    for stream in streams:
        if stream not in every:
            raise StreamNotFound(stream=stream)
    return {stream: each for stream, each in every.items() if stream in streams}


def _require_kept(kept: Located, stream: str, *offsets: int) -> None:
    """Make sure that the records from these offsets on are kept, or are the next to be written.

    Raises:
        StreamNotFound, OffsetOutOfRange: they are not.
    """
    whole = kept.get(stream)
    if whole is None:
        raise StreamNotFound(stream=stream)
    for offset in offsets:
        if not whole.start <= offset <= whole.end:
            raise OffsetOutOfRange(offset=offset, start=whole.start, end=whole.end, stream=stream)


def _clipped(whole: LocatedRange, bounds: Bounds) -> LocatedRange:
    start = max(whole.start, bounds.start or 0)
    end = max(start, whole.end if bounds.end is None else min(whole.end, bounds.end))
    share = whole.bytes * (end - start) // max(1, whole.end - whole.start)
    return replace(whole, start=start, end=end, bytes=share)


def _sized(each: LocatedRange) -> Sized:
    part = SourceRange(each.stream, each.storage_topic_id, each.partition, each.start, each.end)
    return Sized(part, each.bytes)
