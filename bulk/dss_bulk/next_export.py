"""What an export has to write: what its folder does not have yet.

Invariant: a stream is written from where the folder's runs ended, so that no record comes twice.
Nothing is passed in silence: what was deleted before its turn is named, and noted in the folder.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from dss_bulk.export import ExportRun, Lost
from dss_bulk.export_work import ExportParams
from dss_client import Client
from dss_client.changes import CreateJob
from dss_client.job_values import SourceRange
from dss_client.topics import LocatedRange, Topic
from dss_core.errors import ExportBroken, NotExported
from dss_core.ids import StreamName

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class NextExport:
    """What is to be exported next."""

    change: CreateJob | None
    """The job; none where the folder has all."""
    lost: tuple[NotExported, ...] = ()
    """What no export can have any more, since the last one."""


async def next_export(client: Client, change: CreateJob, folder: Path) -> NextExport:
    """The export of what the folder does not have of a change's range.

    Raises:
        ExportBroken: the folder holds something else, or more than the topic.
        DssError: the topic cannot be looked at.
    """
    topic = await client.topics.describe(change.source)
    run = ExportRun(folder, topic.name, topic.topic_id, change.name)
    found = await client.topics.locate(
        change.source, start=_moment(change.start_us), end=_moment(change.end_us)
    )
    _require_no_less(run, topic)
    ranges = list(_ranges(found, run.ends_before))
    left = tuple(each for each in ranges if each.start < each.end)
    # Whoever says where to begin wants nothing before it, this time.
    from_the_last = change.start_us is None
    lost = tuple(_lost(run, found)) if from_the_last and run.ends_before else ()
    told = tuple(
        NotExported(stream=each.stream, start=each.start, end=each.end, folder=folder)
        for each in lost
    )
    if not left:
        return NextExport(None, told)
    # No end falls back, and a stream that is begun later keeps what lies before.
    ends = {each.stream: max(each.start, each.end) for each in (ranges if from_the_last else left)}
    params = ExportParams(str(folder), topic.topic_id, ends, lost)
    changed = replace(change, ranges=left, params=params.to_json(), start_us=None, end_us=None)
    return NextExport(changed, told)


def _ranges(found: Sequence[LocatedRange], ends_before: Mapping[str, int]) -> Iterator[SourceRange]:
    for each in found:
        start = max(each.start, ends_before.get(each.stream, 0))
        yield SourceRange(each.stream, each.storage_topic_id, each.partition, start, each.end)


def _require_no_less(run: ExportRun, topic: Topic) -> None:
    """Refuse a log that lost its end: what comes there next would look as if it was exported."""
    for part in topic.storage_topics:
        for each in part.streams:
            stream = str(StreamName(topic.name, part.ordinal, each.partition))
            if each.end < (exported := run.ends_before.get(stream, 0)):
                reason = f"it has {stream} up to offset {exported}, the log only up to {each.end}"
                raise ExportBroken(folder=run.target, reason=reason)


def _lost(run: ExportRun, found: Sequence[LocatedRange]) -> Iterator[Lost]:
    """What was deleted since the last run before this one could have it."""
    for each in found:
        if (end := run.ends_before.get(each.stream, 0)) < each.start:
            yield Lost(each.stream, end, each.start)


def _moment(time_us: int | None) -> datetime | None:
    return None if time_us is None else _EPOCH + timedelta(microseconds=time_us)
