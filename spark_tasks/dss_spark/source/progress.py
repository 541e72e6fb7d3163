"""How far a query has read a topic, and how far its next batch goes. Pure.

::

    storage topic 0   p0 ████████┤ sealed      1. a batch stays in one storage topic: its tasks run
                      p1 ██████┤ sealed           side by side, and a key may be in an older one too
    storage topic 1   p0 ███░░░▒▒▒▒            2. the next one begins when all before it is read
                      p1 ██░░░▒▒                  and sealed
                           read  next batch    3. a batch takes a share of every stream

Invariant: a later batch of a stream has later offsets, and no offset is passed over: an unread
record that is no longer kept is an error, unless losses are allowed. So a removed stream may be
missing only if the progress says that it was read up to its seal.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from dss_client.job_values import SourceRange
from dss_client.topics import Topic
from dss_core.errors import (
    CheckpointOfOtherData,
    IllegalArgument,
    OffsetOutOfRange,
    StreamNotFound,
)
from dss_core.ids import StreamName


class Place(NamedTuple):
    """The position of a query in a stream."""

    storage_topic_id: int
    """The topic's id: a later topic of the same name has another."""
    offset: int
    """The offset of the next record."""
    is_end: bool = False
    """No record will ever have that offset: the stream was sealed there."""


Progress = Mapping[str, Place]
"""By stream. A stream that is missing has not been begun: its next offset is 0."""

_INCARNATION = "incarnation"
"""The key of the data's incarnation among those of streams; no stream has that name."""


class Offsets(NamedTuple):
    """The progress of a query in Spark's checkpoint."""

    progress: Progress
    incarnation: str
    """The id of the daemon's data; empty if an older version wrote them."""


@dataclass(frozen=True, slots=True)
class KeptStream:
    """The kept range of a stream."""

    name: str
    ordinal: int
    storage_topic_id: int
    start: int
    end: int
    bytes: int
    sealed: bool
    """Whether no more records will come after its end."""


def kept_of(topic: Topic, streams: "frozenset[str] | None") -> list[KeptStream]:
    """The streams of a topic that take or took records, older storage topics first; only the named
    ones, if some are named.
    """
    every = [
        KeptStream(
            f"{topic.name}/{part.ordinal}/{bounds.partition}",
            part.ordinal,
            part.storage_topic_id,
            bounds.start,
            bounds.end,
            bounds.bytes,
            part.sealed,
        )
        for part in topic.storage_topics
        if part.ordinal <= topic.produce_ordinal
        for bounds in part.streams
    ]
    return [each for each in every if streams is None or each.name in streams]


def beginning(places: Progress, kept: Sequence[KeptStream]) -> Progress:
    """Where a query begins; storage topics that wait for a switch are not begun."""
    streams = {each.name: each for each in kept}
    return {
        name: _place(streams[name], place.offset)
        for name, place in places.items()
        if name in streams
    }


def next_end(
    progress: Progress,
    kept: Sequence[KeptStream],
    *,
    records_max: int | None = None,
    targets: Progress | None = None,
    fail_on_loss: bool = True,
) -> Progress:
    """Where the batch after this progress ends; the same progress if there is nothing to read.

    If a stream was read to its end and then sealed, the progress notes that, if need be by a batch
    without records: once the storage topic is gone, nobody could tell any more.

    Args:
        progress: what was read before.
        kept: older storage topics first.
        records_max: about how many records the batch has.
        targets: nothing behind them is read; streams that are missing in them are left alone.
        fail_on_loss: otherwise records that are no longer kept are passed over.

    Raises:
        OffsetOutOfRange: what is to be read next is not kept.
        StreamNotFound: a stream that was not read to its end is gone, or another topic has its
            name.
    """
    if fail_on_loss:
        _require_all(progress, kept)
    for _, group in groupby(kept, key=lambda each: each.ordinal):
        streams = list(group)
        begins = {each.name: _next_offset(progress, each, fail_on_loss) for each in streams}
        ends = {each.name: _end(each, begins[each.name], targets) for each in streams}
        lags = {name: ends[name] - begins[name] for name in ends}
        if any(lags.values()):
            shares = _shares(lags, records_max)
            places = {
                each.name: _place(each, begins[each.name] + shares[each.name]) for each in streams
            }
            return {**progress, **places}
        if not all(each.sealed for each in streams):
            break
        progress = {
            **progress,
            **{each.name: _place(each, begins[each.name]) for each in streams},
        }
    return progress


def _place(stream: KeptStream, offset: int) -> Place:
    is_end = stream.sealed and offset == stream.end
    return Place(stream.storage_topic_id, offset, is_end)


def ranges_between(
    start: Progress, end: Progress, kept: Sequence[KeptStream], *, fail_on_loss: bool = True
) -> list[SourceRange]:
    """The ranges of a batch."""
    begins = {each.name: each.start for each in kept}
    found: list[SourceRange] = []
    for stream, place in end.items():
        before = start.get(stream)
        same = before is not None and before.storage_topic_id == place.storage_topic_id
        at = before.offset if before is not None and same else 0
        if not fail_on_loss:
            at = max(at, begins.get(stream, place.offset))
        if at < place.offset:
            partition = StreamName.parse(stream).partition
            number = place.storage_topic_id
            found.append(SourceRange(stream, number, partition, at, place.offset))
    return found


def offsets_to_json(offsets: Offsets) -> dict[str, object]:
    """Progress as Spark keeps it in its checkpoint."""
    places = {stream: _place_to_json(place) for stream, place in sorted(offsets.progress.items())}
    return {_INCARNATION: offsets.incarnation, **places}


def _place_to_json(place: Place) -> dict[str, int | bool]:
    said = {"storage_topic": place.storage_topic_id, "offset": place.offset}
    return {**said, "end": True} if place.is_end else said


def offsets_from_json(kept: Mapping[str, Any]) -> Offsets:
    """The reverse of `offsets_to_json`.

    Raises:
        IllegalArgument: it is something else.
    """
    try:
        incarnation = str(kept.get(_INCARNATION, ""))
        places = {
            str(StreamName.parse(stream)): Place(
                int(each["storage_topic"]), int(each["offset"]), bool(each.get("end"))
            )
            for stream, each in kept.items()
            if stream != _INCARNATION
        }
    except (AttributeError, KeyError, TypeError, ValueError) as broken:
        rule = "it has to be one that a query of dss has written"
        raise IllegalArgument(argument="the offsets of the checkpoint", rule=rule) from broken
    return Offsets(places, incarnation)


def require_same_data(topic: Topic, *known: Offsets) -> None:
    """Make sure that offsets still mean the same records as when they were written.

    Raises:
        CheckpointOfOtherData: they are of other data than the topic's.
    """
    for each in known:
        if each.incarnation not in ("", topic.incarnation):
            raise CheckpointOfOtherData(topic=topic.name)


def _require_all(progress: Progress, kept: Sequence[KeptStream]) -> None:
    numbers = {each.name: each.storage_topic_id for each in kept}
    for stream, place in progress.items():
        was_read = place.is_end and stream not in numbers
        if not was_read and numbers.get(stream) != place.storage_topic_id:
            raise StreamNotFound(stream=stream)


def _next_offset(progress: Progress, stream: KeptStream, fail_on_loss: bool) -> int:
    place = progress.get(stream.name)
    at = 0 if place is None else place.offset
    if not fail_on_loss:
        same = place is None or place.storage_topic_id == stream.storage_topic_id
        at = max(at, stream.start) if same else stream.start
    if stream.start <= at <= stream.end:
        return at
    raise OffsetOutOfRange(offset=at, start=stream.start, end=stream.end, stream=stream.name)


def _end(stream: KeptStream, at: int, targets: Progress | None) -> int:
    if targets is None:
        return stream.end
    place = targets.get(stream.name)
    return at if place is None else max(at, min(stream.end, place.offset))


def _shares(lags: Mapping[str, int], records_max: int | None) -> dict[str, int]:
    """How many offsets each stream gives: together as many as were asked for, if there are
    enough."""
    total = sum(lags.values())
    if records_max is None or total <= records_max:
        return dict(lags)
    shares = {name: lag * records_max // total for name, lag in lags.items()}
    left = records_max - sum(shares.values())
    for name, lag in lags.items():
        more = min(left, lag - shares[name], 1)
        shares[name] += more
        left -= more
    return shares
