"""The servicer of `Watch`: decodes, asks the watches, encodes."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

import grpc.aio

from dss_api.v1 import watch_pb2, watch_pb2_grpc
from dss_api.values import encoded, message_of, word_of
from dss_core.answers import WatchedGrant
from dss_core.errors import IllegalArgument
from dss_core.filters import SubscriptionFilter
from dssd.events.model import KeptEvent
from dssd.jobs.held_job import JobView
from dssd.machines.watch_board import Value, WatchTopic
from dssd.questions.overviews import Overview
from dssd.questions.watch_looks import WatchedLag, WatchedMember
from dssd.questions.watches import Token, Told, Watches, WatchRequest
from dssd.rpc.events import HIGHEST_NUMBER, event_message
from dssd.rpc.groups import group_message
from dssd.rpc.jobs import listed_job_message
from dssd.rpc.operation_messages import listed_message
from dssd.rpc.schedules import schedule_message
from dssd.rpc.sessions import summary_message
from dssd.schedules.views import ScheduleView
from dssd.sessions.listing import SessionView
from dssd.store.rows import OperationRow

WATCHED_GROUPS_MAX = 1_000
"""Groups that one watcher names; who wants more watches all."""


Context = grpc.aio.ServicerContext[Any, Any]

_TOPICS = watch_pb2.WatchTopic.DESCRIPTOR


class WatchServicer(watch_pb2_grpc.WatchServicer):
    """Serves watchers of changes."""

    def __init__(self, watches: Watches) -> None:
        self._watches = watches

    async def Watch(
        self, request: watch_pb2.WatchRequest, context: Context
    ) -> AsyncGenerator[watch_pb2.WatchReply, None]:
        """The present state, then each change."""
        watching = self._watches.watch(_wanted(request), _token(request))
        async with aclosing(watching) as found:
            async for told in found:
                yield _reply(told)


def _wanted(request: watch_pb2.WatchRequest) -> WatchRequest:
    if len(request.groups) > WATCHED_GROUPS_MAX:
        raise IllegalArgument(argument="groups", rule=f"at most {WATCHED_GROUPS_MAX}")
    return WatchRequest(
        _topics(request.topics), frozenset(map(_group_name, request.groups)), private=request.all
    )


def _topics(numbers: "Sequence[watch_pb2.WatchTopic.ValueType]") -> frozenset[WatchTopic]:
    words = [word_of(_TOPICS, "topics", number) for number in numbers]
    if None in words:
        raise IllegalArgument(argument="topics", rule=f"they are of {', '.join(WatchTopic)}")
    return frozenset(map(WatchTopic, filter(None, words))) or frozenset(WatchTopic)


def _group_name(written: str) -> str:
    if not written.startswith("$"):
        return written
    parsed = SubscriptionFilter.parse(written)
    return f"{parsed.group}@{parsed.filter}" if parsed.group else written


def _token(request: watch_pb2.WatchRequest) -> Token | None:
    if not request.HasField("token"):
        return None
    token = request.token
    for number in (token.revision, token.event_number):
        if number > HIGHEST_NUMBER:
            raise IllegalArgument(argument="token", rule="it is that of a reply")
    return Token(token.instance, token.revision, token.event_number)


def _reply(told: Told) -> watch_pb2.WatchReply:
    return watch_pb2.WatchReply(
        anew=told.anew,
        changed=[_item(value) for _, value in told.changed],
        removed=[message_of(watch_pb2.WatchedKey, key) for key in told.removed],
        token=None if told.token is None else encoded(told.token, watch_pb2.WatchToken),
    )


def _item(value: Value) -> watch_pb2.WatchedItem:
    item = watch_pb2.WatchedItem()
    match value:
        case Overview():
            item.group.CopyFrom(group_message(value))
        case WatchedMember():
            item.member.CopyFrom(encoded(value, watch_pb2.WatchedMember))
        case WatchedGrant():
            item.grant.CopyFrom(encoded(value, watch_pb2.WatchedGrant))
        case WatchedLag():
            item.lag.CopyFrom(_lag(value))
        case KeptEvent():
            item.event.CopyFrom(event_message(value))
        case OperationRow():
            item.operation.CopyFrom(listed_message(value))
        case JobView():
            item.job.CopyFrom(listed_job_message(value))
        case SessionView():
            item.session.CopyFrom(summary_message(value))
        case ScheduleView():
            item.schedule.CopyFrom(schedule_message(value))
        case _:
            raise AssertionError(f"nothing that is watched: {value!r}")
    return item


def _lag(watched: WatchedLag) -> watch_pb2.WatchedLag:
    named = {"group": watched.group, "stream": watched.stream}
    return message_of(watch_pb2.WatchedLag, watched.lag, **named)
