"""What an export has to write: what its folder does not have yet.

Invariant: a stream is written from where the folder's runs ended, so that no record comes twice.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from dss_bulk.export import ExportRun
from dss_bulk.export_work import ExportParams
from dss_client import Client
from dss_client.changes import CreateJob
from dss_client.job_values import SourceRange

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


async def next_export(client: Client, change: CreateJob, folder: Path) -> CreateJob | None:
    """The export of what the folder does not have of a change's range; None where it has all.

    Raises:
        ExportBroken: the folder holds something else.
        DssError: the topic cannot be looked at.
    """
    topic = await client.topics.describe(change.source)
    run = ExportRun(folder, topic.name, topic.topic_id, change.name)
    found = await client.topics.locate(
        change.source, start=_moment(change.start_us), end=_moment(change.end_us)
    )
    ranges = [
        SourceRange(
            each.stream,
            each.storage_topic_id,
            each.partition,
            max(each.start, run.ends_before.get(each.stream, 0)),
            each.end,
        )
        for each in found
    ]
    left = tuple(each for each in ranges if each.start < each.end)
    if not left:
        return None
    params = ExportParams(str(folder), topic.topic_id, {each.stream: each.end for each in left})
    return replace(change, ranges=left, params=params.to_json(), start_us=None, end_us=None)


def _moment(time_us: int | None) -> datetime | None:
    return None if time_us is None else _EPOCH + timedelta(microseconds=time_us)
