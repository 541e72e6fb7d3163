"""The servicer of `Queues`: decodes, asks the questions, encodes."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import grpc.aio

from dss_api.v1 import queues_pb2, queues_pb2_grpc, types_pb2
from dss_api.values import encoded
from dss_core.errors import IllegalArgument
from dss_core.ids import StreamName
from dss_core.lane import DEAD, RETRY
from dss_core.limits import KEY_BYTES_MAX
from dssd.loop_yield import LoopTurn
from dssd.questions.limits import ENTRIES_PAGE_MAX
from dssd.questions.queues import EntriesAsked, QueueQuestions
from dssd.queues.looking import Choice, QueueEntry

Context = grpc.aio.ServicerContext[Any, Any]
Found = TypeVar("Found")
Made = TypeVar("Made")

_LEVELS: dict[int, int] = {queues_pb2.QUEUE_LEVEL_RETRY: RETRY, queues_pb2.QUEUE_LEVEL_DEAD: DEAD}
_LEVEL_NUMBERS: dict[int, Any] = {level: number for number, level in _LEVELS.items()}


class QueuesServicer(queues_pb2_grpc.QueuesServicer):
    """Serves what operators ask of queues."""

    def __init__(self, questions: QueueQuestions) -> None:
        self._questions = questions

    async def List(
        self, request: queues_pb2.ListEntriesRequest, context: Context
    ) -> queues_pb2.ListEntriesReply:
        """Entries page by page, or the newest of all."""
        asked = _asked(request)
        if request.newest:
            count = min(request.newest, ENTRIES_PAGE_MAX)
            page = await self._questions.newest(asked, count, whole=request.whole)
        else:
            token = request.page_token
            page = await self._questions.entries(asked, token, whole=request.whole)
        make = partial(_entry, whole=request.whole)
        return queues_pb2.ListEntriesReply(
            entries=await _all_of(page.entries, make),
            next_page_token=page.next_token,
            total=page.total,
        )

    async def Keys(
        self, request: queues_pb2.CountKeysRequest, context: Context
    ) -> queues_pb2.CountKeysReply:
        """How many entries there are of each key."""
        level = _level(request.level)
        page = await self._questions.keys(request.group, level, request.error, request.page_token)
        return queues_pb2.CountKeysReply(
            keys=await _all_of(page.keys, lambda each: encoded(each, queues_pb2.KeyCount)),
            next_page_token=page.next_token,
            total=page.total,
        )

    async def Errors(
        self, request: queues_pb2.CountErrorsRequest, context: Context
    ) -> queues_pb2.CountErrorsReply:
        """How many entries there are of each error."""
        level = _level(request.level)
        page = await self._questions.errors(request.group, level, request.page_token)
        return queues_pb2.CountErrorsReply(
            errors=await _all_of(page.errors, lambda each: encoded(each, queues_pb2.ErrorCount)),
            next_page_token=page.next_token,
            total=page.total,
        )


async def _all_of(found: Sequence[Found], make: Callable[[Found], Made]) -> list[Made]:
    """Messages of as many as one answer has: so many take longer than one turn of the loop."""
    turn, made = LoopTurn(), list[Made]()
    for each in found:
        made.append(make(each))
        await turn.give_way()
    # The reply copies them all, which is a turn of its own.
    await asyncio.sleep(0)
    return made


def _asked(request: queues_pb2.ListEntriesRequest) -> EntriesAsked:
    key = request.key if request.HasField("key") else None
    if key is not None and len(key) > KEY_BYTES_MAX:
        raise IllegalArgument(argument="key", rule=f"it has at most {KEY_BYTES_MAX} bytes")
    offset = request.offset if request.HasField("offset") else None
    if offset is not None and not request.stream:
        raise IllegalArgument(argument="offset", rule="it needs a stream")
    stream = StreamName.parse(request.stream) if request.stream else None
    choice = Choice(
        request.error,
        key,
        stream,
        offset,
        request.client_id,
        request.start_us if request.HasField("start_us") else None,
        request.end_us if request.HasField("end_us") else None,
        request.attempt,
    )
    if request.newest and (request.page_token or choice != Choice(stream=stream)):
        rule = "the newest of all, or entries that are chosen: ask page by page for those"
        raise IllegalArgument(argument="newest", rule=rule)
    return EntriesAsked(request.group, _level(request.level), choice)


def _level(number: int) -> int:
    level = _LEVELS.get(number)
    if level is None:
        raise IllegalArgument(argument="level", rule="retry or dead")
    return level


def _entry(found: QueueEntry, *, whole: bool) -> queues_pb2.QueueEntry:
    entry = found.entry
    message = queues_pb2.QueueEntry(
        stream=str(found.stream),
        offset=entry.origin_offset,
        level=_LEVEL_NUMBERS[found.level],
        queue_offset=found.queue_offset,
        subject=found.subject,
        key=found.key,
        payload_bytes=len(found.payload),
        attempt=entry.attempt,
        redrives=entry.redrives,
        cause=entry.cause,
        error_type=entry.error_type,
        error=found.error,
        fingerprint=found.fingerprint,
        client_id=entry.client_id,
        appended_at_us=entry.origin_time_us,
        first_failure_ms=entry.first_failure_ms,
        entered_at_us=found.entered_at_us,
        due_ms=entry.due_ms,
    )
    if whole:
        message.payload = found.payload
        message.headers.extend(
            types_pb2.Header(name=name, value=value) for name, value in found.headers
        )
    return message
