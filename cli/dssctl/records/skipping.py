"""Which records a skip by hand means: offsets and ranges as they are typed, or those of a key.

Invariant: what is found is given to the daemon as offsets, so that the plan that a person agrees
to, and not a search made later, says what is skipped.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from dss_core.errors import IllegalArgument, NothingOfKeyLeft, TimedOut
from dss_core.ids import StreamName
from dss_core.progress import Progress, normalised
from dssctl.connection import connected, require_daemon, suggestions
from dssctl.output import note_condition
from dssctl.progress import looking
from dssctl.records.looking import Look, RecordsWanted, matching
from dssctl.records.places import Span, spans_of, topic_and_stream
from dssctl.settings import Settings

if TYPE_CHECKING:
    from dss_client import Client
    from dss_client.changes import RecordSpan


def spans_typed(stream: str, texts: Sequence[str], count: int | None) -> "tuple[RecordSpan, ...]":
    """``7``, or ``7-9`` with both ends, each; a count goes with one offset.

    Raises:
        IllegalArgument: one is neither, or the count has no single offset to begin at.
    """
    ranges = [_range(text) for text in texts]
    if count is not None:
        if len(texts) != 1 or not texts[0].isdecimal():
            raise IllegalArgument(argument="--count", rule="it goes with one offset")
        ranges = [(ranges[0][0], ranges[0][0] + count)]
    return _spans(stream, ranges)


def _range(text: str) -> tuple[int, int]:
    first, dash, last = text.partition("-")
    ends = [first, last] if dash else [first]
    if not all(each.isascii() and each.isdecimal() for each in ends) or int(ends[0]) > int(
        ends[-1]
    ):
        raise IllegalArgument(argument=f"the offset {text}", rule="write 7, or 7-9 with both ends")
    return int(ends[0]), int(ends[-1]) + 1


def _spans(stream: str, ranges: Iterable[tuple[int, int]]) -> "tuple[RecordSpan, ...]":
    from dss_client.changes import RecordSpan

    return tuple(RecordSpan(stream, low, high - low) for low, high in normalised(ranges))


def spans_of_key(
    settings: Settings, group: str, place: str | None, key: str
) -> "tuple[RecordSpan, ...]":
    """The records of a key that the group has not acknowledged.

    Raises:
        NothingOfKeyLeft: there is none in what the group reads, or in that place.
        TimedOut: the search took too long; nothing was changed.
    """
    seconds = settings.wait_s

    async def searched(show: Callable[[int, int], None]) -> "tuple[RecordSpan, ...]":
        try:
            async with asyncio.timeout(seconds), connected(settings) as client:
                await require_daemon(client, settings)
                async with suggestions(settings, client):
                    return await _of_key(settings, client, group, place, key, show)
        except TimeoutError as late:
            raise TimedOut(what="The search", seconds=f"{seconds:g}") from late

    with looking(settings, f"search for {key}") as show:
        return asyncio.run(searched(show))


async def _of_key(
    settings: Settings,
    client: "Client",
    group: str,
    place: str | None,
    key: str,
    show: Callable[[int, int], None],
) -> "tuple[RecordSpan, ...]":
    offsets = await client.groups.offsets(group)
    standing = {
        str(StreamName(each.topic, each.ordinal, each.partition)): each.progress
        for each in offsets.streams
    }
    wanted = RecordsWanted(
        key=key.encode(errors="surrogateescape"), subject=offsets.group.partition("@")[2]
    )
    places = [place] if place else sorted({each.topic for each in offsets.streams})
    look = Look([span for each in places for span in await _left(client, each, wanted, standing)])
    found: dict[str, list[tuple[int, int]]] = {}
    tell = partial(note_condition, settings)
    async with aclosing(matching(client, look, wanted, look.total + 1, tell)) as records:
        async for each in records:
            if each is None:
                show(look.looked, look.total)
            elif not standing[each.stream].is_acked(each.offset):
                found.setdefault(each.stream, []).append((each.offset, each.offset + 1))
    if not found:
        raise NothingOfKeyLeft(group=offsets.group, key=key)
    return tuple(span for stream, ranges in found.items() for span in _spans(stream, ranges))


async def _left(
    client: "Client", place: str, wanted: RecordsWanted, standing: Mapping[str, Progress]
) -> list[Span]:
    """Where the key may be in what the group reads, and has not acknowledged in one piece."""
    topic, stream = topic_and_stream(place, None)
    return [
        replace(span, start=max(span.start, standing[span.stream].floor))
        for span in await spans_of(client, topic, stream, wanted.key)
        if span.stream in standing
    ]
