"""How far a query has read a topic, and how far its next batch goes. Pure.

::

    storage topic 0   p0 ████████┤ sealed      1. a batch stays in one storage topic: its tasks run
                      p1 ██████┤ sealed           side by side, and a key may be in an older one too
    storage topic 1   p0 ███░░░▒▒▒▒            2. the next one begins when all before it is read
                      p1 ██░░░▒▒                  and sealed
                           read  next batch    3. a batch takes a share of every stream

Invariant: of a stream, a later batch has later offsets, and no offset is passed over: what was to
be read and is not kept any more is an error, unless losses are allowed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from dss_client.job_values import SourceRange
from dss_client.topics import Topic
from dss_core.errors import IllegalArgument, OffsetOutOfRange, StreamNotFound
from dss_core.ids import StreamName


class Place(NamedTuple):
    """Where a query is in a stream."""

    storage_topic_id: int
    """Of no other topic, ever: one that has the same name is not taken for it."""
    offset: int
    """Of the next record."""


Progress = Mapping[str, Place]
"""By stream. One that is not in it has not been begun: its next offset is 0."""


@dataclass(frozen=True, slots=True)
class KeptStream:
    """What is there of a stream."""

    name: str
    ordinal: int
    storage_topic_id: int
    start: int
    end: int
    bytes: int
    sealed: bool
    """Whether nothing comes behind its end any more."""


def kept_of(topic: Topic, streams: "frozenset[str] | None") -> list[KeptStream]:
    """The streams of a topic, older storage topics first; some of them, where it is said which."""
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
        for bounds in part.streams
    ]
    return [each for each in every if streams is None or each.name in streams]


def next_end(
    progress: Progress,
    kept: Sequence[KeptStream],
    *,
    records_max: int | None = None,
    targets: Progress | None = None,
    fail_on_loss: bool = True,
) -> Progress:
    """Where the batch behind this progress ends; the same progress where there is nothing to read.

    Args:
        progress: what was read before.
        kept: older storage topics first.
        records_max: of the batch, about.
        targets: nothing behind them is read; streams that are not in them are left alone.
        fail_on_loss: else what is not kept any more is passed over.

    Raises:
        OffsetOutOfRange: what is to be read next is not kept.
        StreamNotFound: a stream that was read is gone, or another topic has its name.
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
                each.name: Place(each.storage_topic_id, begins[each.name] + shares[each.name])
                for each in streams
            }
            return {**progress, **places}
        if not all(each.sealed for each in streams):
            break
    return progress


def ranges_between(
    start: Progress, end: Progress, kept: Sequence[KeptStream], *, fail_on_loss: bool = True
) -> list[SourceRange]:
    """What a batch reads."""
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


def progress_to_json(progress: Progress) -> dict[str, dict[str, int]]:
    """As Spark keeps it in its checkpoint."""
    return {
        stream: {"storage_topic": place.storage_topic_id, "offset": place.offset}
        for stream, place in sorted(progress.items())
    }


def progress_from_json(kept: Mapping[str, Mapping[str, int]]) -> Progress:
    """What `progress_to_json` gave.

    Raises:
        IllegalArgument: it is something else.
    """
    try:
        return {
            str(StreamName.parse(stream)): Place(int(each["storage_topic"]), int(each["offset"]))
            for stream, each in kept.items()
        }
    except (KeyError, TypeError, ValueError) as broken:
        rule = "it has to be one that a query of dss has written"
        raise IllegalArgument(argument="the offsets of the checkpoint", rule=rule) from broken


def _require_all(progress: Progress, kept: Sequence[KeptStream]) -> None:
    numbers = {each.name: each.storage_topic_id for each in kept}
    known = {StreamName.parse(stream).ordinal for stream in progress if stream in numbers}
    for stream, place in progress.items():
        # An old storage topic that is gone was read to its end before a newer one was begun.
        was_read = stream not in numbers and StreamName.parse(stream).ordinal < max(
            known, default=0
        )
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
    """How many offsets each stream gives: together as many as were asked for, if there are."""
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
