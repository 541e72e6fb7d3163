"""How things are, and each change of them, for dashboards.

Invariant: values in, frozen values out; no wire message leaves this module. A caller that applies
each update mirrors the daemon. A watch that lost its connection goes on where it was; if the daemon
has forgotten that place, it begins again and says so by `WatchUpdate.anew`.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from dss_api.values import decoded
from dss_client._outage_log import Outage
from dss_client.events import Event
from dss_client.group_values import Group
from dss_client.job_values import Job
from dss_client.operation_values import Operation
from dss_client.schedules import Schedule
from dss_client.sessions import SessionSummary, session_from_wire
from dss_core.answers import WatchedGrant as WatchedGrant
from dss_core.errors import PASSING, IllegalArgument, Overloaded, WatchTooOld

if TYPE_CHECKING:
    from dss_api.v1 import watch_pb2
    from dss_client._connection import Connection

WATCH_PIECE_ITEMS = 100
"""How many items of a watch are made into values at once: a millisecond or two, in which nothing
else runs in the caller's loop."""


TOPICS = (
    "groups",
    "members",
    "grants",
    "lags",
    "events",
    "operations",
    "sessions",
    "schedules",
    "jobs",
)
"""What can be watched."""


@dataclass(frozen=True, slots=True)
class WatchedMember:
    """A member of a group."""

    group: str
    """NAME@FILTER."""
    borrower_id: str
    client_id: str
    streams: int
    connected_at_ms: int


@dataclass(frozen=True, slots=True)
class WatchedLag:
    """How far behind a group is in a stream."""

    group: str
    """NAME@FILTER."""
    stream: str
    floor: int
    """The first offset that is not done."""
    end: int
    """The stream's next offset."""
    lag: int
    """Records not acknowledged; an upper bound unless `lag_exact`."""
    lag_exact: bool
    oldest_unacked_us: int | None
    """Append time of the oldest unacknowledged record."""


WatchedValue: TypeAlias = (
    Group
    | WatchedMember
    | WatchedGrant
    | WatchedLag
    | Event
    | Operation
    | SessionSummary
    | Schedule
    | Job
)


@dataclass(frozen=True, slots=True)
class WatchKey:
    """Names an item."""

    topic: str
    """One of `TOPICS`."""
    group: str
    """NAME@FILTER; empty where it is of none."""
    name: str
    """A borrower's id, a stream, a number, a client id; empty where it is the group."""


@dataclass(frozen=True, slots=True)
class WatchUpdate:
    """What a watch tells at once."""

    anew: bool
    """Drop what was told before, events aside: all comes again."""
    changed: tuple[tuple[WatchKey, WatchedValue], ...]
    removed: tuple[WatchKey, ...]
    complete: bool
    """The state up to now is complete; else more updates follow at once."""


async def watch(
    connection: "Connection", topics: Sequence[str], groups: Sequence[str], *, all: bool
) -> AsyncGenerator[WatchUpdate, None]:
    """See `Client.watch`."""
    from dss_client._backoff import Backoff

    request = _request(topics, groups, private=all)
    outage = Outage("the watching of the daemon", connection.endpoint.text)
    backoff = Backoff()
    began = False
    while True:
        try:
            async with aclosing(_watched(connection, request)) as watched:
                async for reply in watched:
                    began = True
                    backoff.reset()
                    outage.ended()
                    for update in updates_from_wire(reply):
                        yield update
                    if reply.HasField("token"):
                        request.token.CopyFrom(reply.token)
        except WatchTooOld:
            # The events of a daemon outlive it; nothing else that was told before counts any more.
            request.token.revision = 0
        except PASSING as error:
            began = began or connection.outages.are_waited_out(error)
            if not began or isinstance(error, Overloaded):
                raise
            outage.began(error)
        await asyncio.sleep(backoff.pause_s())


async def _watched(
    connection: "Connection", request: "watch_pb2.WatchRequest"
) -> AsyncGenerator["watch_pb2.WatchReply", None]:
    """The replies of one call.

    Raises:
        DssError: the daemon refuses, or the connection was lost.
    """
    from dss_client._connection import ConnectionLostError

    call = connection.watch.Watch(request)
    try:
        while (reply := await connection.read_or_end(call)) is not None:
            yield reply
    except ConnectionLostError as lost:
        raise lost.reason from lost
    finally:
        call.cancel()


def _request(
    topics: Sequence[str], groups: Sequence[str], *, private: bool
) -> "watch_pb2.WatchRequest":
    from dss_api.v1 import watch_pb2

    for topic in topics:
        if topic not in TOPICS:
            rule = f"it is one of {', '.join(TOPICS)}"
            raise IllegalArgument(argument=f"topic {topic}", rule=rule)
    numbers = [watch_pb2.WatchTopic.Value(f"WATCH_TOPIC_{topic.upper()}") for topic in topics]
    return watch_pb2.WatchRequest(topics=numbers, groups=groups, all=private)


def updates_from_wire(reply: "watch_pb2.WatchReply") -> Iterator[WatchUpdate]:
    """A reply in pieces: whoever takes them need not wait until all of it is made."""
    changed = reply.changed
    last = max(0, len(changed) - 1) // WATCH_PIECE_ITEMS * WATCH_PIECE_ITEMS
    for at in range(0, last + 1, WATCH_PIECE_ITEMS):
        yield WatchUpdate(
            anew=reply.anew and at == 0,
            changed=tuple(map(_item, changed[at : at + WATCH_PIECE_ITEMS])),
            removed=tuple(map(_key, reply.removed)) if at == last else (),
            complete=reply.HasField("token") and at == last,
        )


def _key(key: "watch_pb2.WatchedKey") -> WatchKey:
    from dss_api.v1 import watch_pb2

    topic = watch_pb2.WatchTopic.Name(key.topic).removeprefix("WATCH_TOPIC_").lower()
    return WatchKey(topic, key.group, key.name)


def _item(item: "watch_pb2.WatchedItem") -> tuple[WatchKey, WatchedValue]:
    match item.WhichOneof("item"):
        case "group":
            group = decoded(item.group, Group)
            return WatchKey("groups", f"{group.name}@{group.filter}", ""), group
        case "event":
            return WatchKey("events", "", str(item.event.number)), decoded(item.event, Event)
        case "operation":
            operation = decoded(item.operation, Operation)
            return WatchKey("operations", "", str(operation.number)), operation
        case "session":
            session = session_from_wire(item.session)
            return WatchKey("sessions", "", session.client_id), session
        case "schedule" | "job":
            return _item_of_work(item)
        case _:
            return _item_of_group(item)


def _item_of_work(item: "watch_pb2.WatchedItem") -> tuple[WatchKey, WatchedValue]:
    if item.HasField("job"):
        job = decoded(item.job, Job)
        return WatchKey("jobs", "", job.name), job
    schedule = decoded(item.schedule, Schedule)
    return WatchKey("schedules", "", schedule.name), schedule


def _item_of_group(item: "watch_pb2.WatchedItem") -> tuple[WatchKey, WatchedValue]:
    if item.HasField("member"):
        member = decoded(item.member, WatchedMember)
        return WatchKey("members", member.group, member.borrower_id), member
    if item.HasField("grant"):
        grant = decoded(item.grant, WatchedGrant)
        return WatchKey("grants", grant.group, grant.stream), grant
    lag = decoded(item.lag, WatchedLag)
    return WatchKey("lags", lag.group, lag.stream), lag
