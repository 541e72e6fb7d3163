"""Asks the daemon for what no watch reports: records in flight, why a floor stands, records, a
topic, a job, a queue.

Invariant: these questions change nothing; records are read without a group.
"""

import asyncio
from typing import TYPE_CHECKING, assert_never

from dss_core.errors import DssError, OffsetOutOfRange, StreamDamaged
from dssctl.top.feed.queue_answers import queue_answer
from dssctl.top.limits import RECORDS_PAGE
from dssctl.top.model.answers import Answer, Question

if TYPE_CHECKING:
    from dss_client import Client, Record, RecordStanding
    from dssctl.top.feed.job_answers import JobAnswers
    from dssctl.top.model.picture import Picture
    from dssctl.top.model.places import Place

LISTED_OFFSETS_MAX = 16
"""For how many streams the reason of their floor is asked at once: those that lag most."""

PAGE_BYTES_MAX = 8 << 20
"""How many bytes of payloads a page of records has; beyond that the page is shorter."""

RECORDS_BEFORE = 20
"""How many records are shown of a stream without lag, the last ones."""


async def answered(
    client: "Client",
    place: "Place",
    question: Question,
    picture: "Picture",
    jobs: "JobAnswers",
) -> Answer:
    """The answer to what a screen asks about a place.

    Raises:
        DssError: the daemon refuses, or is away.
    """
    match question:
        case "out":
            return await _out(client, place, picture)
        case "stream":
            return await _stream(client, place, picture)
        case "record":
            return await _record(client, place)
        case "topic":
            return Answer(place, topic=await client.topics.describe(place.name))
        case "job":
            return await jobs.answer(client, place)
        case "dead" | "dead-records" | "dead-letter" | "waiting":
            return await queue_answer(client, place, question)
        case _:
            assert_never(question)


async def _out(client: "Client", place: "Place", picture: "Picture") -> Answer:
    sums = await client.groups.verify(place.group)
    lags = picture.items.lags.get(place.group, {})
    waiting = sorted(
        (each for each in sums if each.out or each.waiting), key=lambda each: -each.out
    )
    asked = [each.stream for each in waiting if each.stream in lags][:LISTED_OFFSETS_MAX]
    standings = await asyncio.gather(
        *(_standing(client, place.group, stream, lags[stream].floor) for stream in asked)
    )
    found = tuple(each for each in standings if each is not None)
    return Answer(place, sums=sums, standings=found)


async def _standing(
    client: "Client", group: str, stream: str, offset: int
) -> "RecordStanding | None":
    """Why a record is not delivered; None if that cannot be known now."""
    try:
        answer = await client.groups.why(group, stream=stream, offset=offset)
    except DssError:
        return None  # it was done, or removed, since the picture was made
    return answer.records[0] if answer.records else None


async def _stream(client: "Client", place: "Place", picture: "Picture") -> Answer:
    lag = picture.items.lags.get(place.group, {}).get(place.stream)
    start = place.offset
    if start is None and lag is not None:
        start = min(lag.floor, max(0, lag.end - RECORDS_BEFORE))
    records, failure = await _records(client, place.stream, start, RECORDS_PAGE)
    standing = None
    if lag is not None and lag.floor < lag.end:
        standing = await _standing(client, place.group, place.stream, lag.floor)
    standings = () if standing is None else (standing,)
    return Answer(place, standings=standings, records=records, failure=failure)


async def _record(client: "Client", place: "Place") -> Answer:
    records, failure = await _records(client, place.stream, place.offset, 1)
    found = tuple(each for each in records if each.offset == place.offset)
    standing = None
    if place.group and place.offset is not None:
        standing = await _standing(client, place.group, place.stream, place.offset)
    standings = () if standing is None else (standing,)
    return Answer(place, standings=standings, records=found, failure=failure)


async def _records(
    client: "Client", stream: str, start: int | None, count: int
) -> "tuple[tuple[Record, ...], str]":
    """Records of a stream from an offset on, and the ranges that cannot be read."""
    try:
        return await _read(client, stream, "earliest" if start is None else start, count)
    except OffsetOutOfRange:
        # Retention took the offset, or it is not written: show the stream from its beginning.
        return await _read(client, stream, "earliest", count)


async def _read(
    client: "Client", stream: str, start: str | int, count: int
) -> "tuple[tuple[Record, ...], str]":
    found: list[Record] = []
    held_bytes, failure = 0, ""
    reader = client.read(stream=stream, start=start, records_max=count, on_damage=lambda _: None)
    try:
        async for record in reader:
            found.append(record)
            held_bytes += len(record.payload)
            if held_bytes > PAGE_BYTES_MAX:
                break
    except StreamDamaged as damage:
        failure = damage.message
    return tuple(found), failure
