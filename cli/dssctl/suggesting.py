"""Names that may have been meant by one that the daemon does not know.

Invariant: a suggestion costs one more question, and a failure of it changes nothing.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from dss_core.errors import (
    BorrowerNotFound,
    DssError,
    GroupNotFound,
    JobNotFound,
    ScheduleNotFound,
    SessionNotFound,
    StreamNotFound,
    TaskNotFound,
    TopicNotFound,
)
from dssctl.near_names import near_names

if TYPE_CHECKING:
    from dss_client import Client

Names = Callable[["Client", DssError], Awaitable[list[str]]]


async def suggest(client: "Client", failure: DssError) -> None:
    """Note on the failure which names are near; nothing where none is."""
    field, names = _KNOWN.get(type(failure), ("", _no_names))
    with suppress(DssError):
        near = near_names(failure.fields.get(field, ""), await names(client, failure))
        if near:
            failure.add_note(f"Did you mean {' or '.join(near)}?")


async def _no_names(_client: "Client", _failure: DssError) -> list[str]:
    return []


async def _topics(client: "Client", _failure: DssError) -> list[str]:
    return [each.topic.name for each in await client.topics.list()]


async def _groups(client: "Client", failure: DssError) -> list[str]:
    groups = await client.groups.list()
    if "@" in failure.fields.get("group", ""):
        return [f"{each.name}@{each.filter}" for each in groups]
    return list(dict.fromkeys(each.name for each in groups))


async def _members(client: "Client", failure: DssError) -> list[str]:
    described = await client.groups.describe(failure.fields["group"])
    return [each.client_id for each in described.borrowers]


async def _sessions(client: "Client", _failure: DssError) -> list[str]:
    return [each.client_id for each in await client.sessions.list()]


async def _streams(client: "Client", failure: DssError) -> list[str]:
    topic = failure.fields.get("stream", "").partition("/")[0]
    described = await client.topics.describe(topic)
    return [
        f"{topic}/{storage.ordinal}/{bounds.partition}"
        for storage in described.storage_topics
        for bounds in storage.streams
    ]


async def _schedules(client: "Client", _failure: DssError) -> list[str]:
    return [each.name for each in await client.schedules.list()]


async def _jobs(client: "Client", _failure: DssError) -> list[str]:
    return [each.name for each in await client.jobs.list()]


async def _tasks(client: "Client", _failure: DssError) -> list[str]:
    return [each.name for each in await client.schedules.tasks()]


_KNOWN: dict[type[DssError], tuple[str, Names]] = {
    TopicNotFound: ("topic", _topics),
    GroupNotFound: ("group", _groups),
    BorrowerNotFound: ("borrower", _members),
    SessionNotFound: ("client_id", _sessions),
    StreamNotFound: ("stream", _streams),
    ScheduleNotFound: ("schedule", _schedules),
    TaskNotFound: ("task", _tasks),
    JobNotFound: ("job", _jobs),
}
"""By condition, the field that has the name, and the names that there are."""
