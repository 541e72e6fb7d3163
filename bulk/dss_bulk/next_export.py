"""Plans the next export: the records that its folder does not have yet.

::

    orders/0   noted: sealed at 8,112, exported up to 8,112    may go, all of it is there
    orders/1   noted: sealed at 7,950, exported up to 7,000    goes: 950 offsets are missing
    orders/2   noted: takes records                            goes: nobody knows what is missing
    orders/3   not known                                       comes and goes: likewise

Invariant: a stream is written from where the folder's runs ended, so that no record comes twice.
Losses are always reported: records that were deleted before an export could have them are named and
noted in the folder, and so is a removed storage topic, unless the folder certainly has all of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from dss_bulk.export import Ends, ExportRun, ExportState, Lost, Noted, held_name
from dss_bulk.export_work import ExportParams
from dss_client import Client
from dss_client.changes import CreateJob
from dss_client.job_values import SourceRange
from dss_client.topics import LocatedRange, Topic
from dss_core.errors import DssError, ExportBroken, NotExported, StorageTopicNotExported
from dss_core.ids import StreamName

_AT = "#"
"""A character that no name of a stream has."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class NextExport:
    """The next export."""

    change: CreateJob | None
    """The job; None if the folder has everything."""
    run: ExportRun
    noted: Noted
    """Further findings. A job stores them; without a job, `ExportRun.note` does."""
    told: tuple[DssError, ...] = ()
    """Sentences about records that no export can have any more, since the last export."""


async def next_export(client: Client, change: CreateJob, folder: Path) -> NextExport:
    """The export of the part of a change's range that the folder lacks.

    Raises:
        ExportBroken: the folder holds something else, or more than the topic.
        DssError: the topic cannot be read.
    """
    if change.dead_letters:
        return await _next_of_dead_letters(client, change, folder)
    topic = await client.topics.describe(change.source)
    run = ExportRun(folder, topic.name, topic.topic_id, change.name)
    found = await client.topics.locate(
        change.source, start=_moment(change.start_us), end=_moment(change.end_us)
    )
    _require_no_less(run, topic)
    ranges = list(_ranges(found, run.before.ends))
    left = tuple(each for each in ranges if each.start < each.end)
    # A user who names a beginning wants nothing before it, this time.
    from_the_last = change.start_us is None
    # An end never falls back, and a stream that begins later keeps its earlier records.
    ends = {each.stream: max(each.start, each.end) for each in (ranges if from_the_last else left)}
    noted = Noted(ends, storage_topics=_storage_topics(topic))
    noted = _with_missing(noted, run.before, topic, found, from_the_last=from_the_last)
    told = tuple(_told(noted, topic, folder))
    if not left:
        return NextExport(None, run, noted, told)
    params = ExportParams(str(folder), topic.topic_id, noted)
    changed = replace(change, ranges=left, params=params.to_json(), start_us=None, end_us=None)
    return NextExport(changed, run, noted, told)


async def _next_of_dead_letters(client: Client, change: CreateJob, folder: Path) -> NextExport:
    """The entries that died since the last export and are dead now.

    Entries that were redriven or discarded between two exports are missing on purpose, and no loss.
    """
    topic = await client.topics.describe(change.source)
    group = (await client.groups.describe(change.dead_letters)).group
    change = replace(change, dead_letters=f"{group.name}@{group.filter}")
    found = await client.topics.locate(
        change.source,
        start=_moment(change.start_us),
        end=_moment(change.end_us),
        dead_letters=change.dead_letters,
    )
    held = held_name(change.source, change.dead_letters)
    run = ExportRun(folder, held, topic.topic_id, change.name)
    pieces = _ranges([replace(each, stream=_queue(each)) for each in found], run.before.ends)
    left = [each for each in pieces if each.start < each.end]
    noted = Noted({each.stream: each.end for each in left})
    if not left:
        return NextExport(None, run, noted)
    ranges = tuple(replace(each, stream=each.stream.partition(_AT)[0]) for each in left)
    params = ExportParams(str(folder), topic.topic_id, noted)
    changed = replace(change, ranges=ranges, params=params.to_json(), start_us=None, end_us=None)
    return NextExport(changed, run, noted)


def _queue(each: LocatedRange) -> str:
    """The folder's name for a queue: a queue that is made anew begins anew, under another
    number."""
    return f"{each.stream}{_AT}{each.storage_topic_id}"


def _ranges(found: Sequence[LocatedRange], ends_before: Mapping[str, int]) -> Iterator[SourceRange]:
    for each in found:
        start = max(each.start, ends_before.get(each.stream, 0))
        yield SourceRange(each.stream, each.storage_topic_id, each.partition, start, each.end)


def _require_no_less(run: ExportRun, topic: Topic) -> None:
    """Refuse a log that lost its end: new records there would count as exported already."""
    for part in topic.storage_topics:
        for each in part.streams:
            stream = str(StreamName(topic.name, part.ordinal, each.partition))
            if each.end < (exported := run.before.ends.get(stream, 0)):
                reason = f"it has {stream} up to offset {exported}, the log only up to {each.end}"
                raise ExportBroken(folder=run.target, reason=reason)


def _with_missing(
    noted: Noted,
    before: ExportState,
    topic: Topic,
    found: Sequence[LocatedRange],
    *,
    from_the_last: bool,
) -> Noted:
    """The notes, with records that no export can have; reported once, by an export of all that is
    new."""
    if not from_the_last:
        return replace(noted, storage_topics={**before.storage_topics, **noted.storage_topics})
    if not before.ends:
        return noted
    lost = (*_lost_of_gone(before, topic), *_lost(before, found))
    return replace(noted, lost=lost, gone=tuple(_in_doubt(before, topic)))


def _lost(before: ExportState, found: Sequence[LocatedRange]) -> Iterator[Lost]:
    """The ranges deleted between the last run and this one."""
    for each in found:
        if (end := before.ends.get(each.stream, 0)) < each.start:
            yield Lost(each.stream, end, each.start)


def _storage_topics(topic: Topic) -> dict[int, Ends]:
    """The storage topics that take records, or did."""
    return {
        part.ordinal: tuple(each.end for each in part.streams) if part.sealed else None
        for part in topic.storage_topics
        if part.ordinal <= topic.produce_ordinal
    }


def _gone(before: ExportState, topic: Topic) -> range:
    """The ordinals of storage topics removed since the last export: the oldest are removed first.

    An older version noted only where streams ended.
    """
    noted = before.storage_topics or {StreamName.parse(each).ordinal for each in before.ends}
    first = topic.storage_topics[0].ordinal
    return range(min(noted, default=first), first)


def _lost_of_gone(before: ExportState, topic: Topic) -> Iterator[Lost]:
    """The missing ranges of storage topics with a known end."""
    for ordinal in _gone(before, topic):
        for partition, end in enumerate(before.storage_topics.get(ordinal) or ()):
            stream = str(StreamName(topic.name, ordinal, partition))
            if (exported := before.ends.get(stream, 0)) < end:
                yield Lost(stream, exported, end)


def _in_doubt(before: ExportState, topic: Topic) -> Iterator[int]:
    """The removed storage topics with an unknown end."""
    for ordinal in _gone(before, topic):
        if before.storage_topics.get(ordinal) is None:
            yield ordinal


def _told(noted: Noted, topic: Topic, folder: Path) -> Iterator[DssError]:
    for ordinal in noted.gone:
        storage_topic = f"{topic.name}/{ordinal}"
        yield StorageTopicNotExported(storage_topic=storage_topic, folder=folder)
    for each in noted.lost:
        yield NotExported(stream=each.stream, start=each.start, end=each.end, folder=folder)


def _moment(time_us: int | None) -> datetime | None:
    return None if time_us is None else _EPOCH + timedelta(microseconds=time_us)
