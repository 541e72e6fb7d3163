"""The calls of `Groups` that ask why: decode, ask the questions, encode."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from dss_api.v1 import groups_pb2
from dss_api.values import encoded, message_of
from dss_core.errors import IllegalArgument
from dss_core.limits import KEY_BYTES_MAX
from dssd.machines.start_point import OFFSET_MAX
from dssd.questions.answers import RecordAnswer, StreamLooked
from dssd.questions.limits import STUCK_AFTER_MS
from dssd.questions.questions import Questions
from dssd.questions.stuck import Stuck
from dssd.questions.verdicts import level_of
from dssd.questions.verify import QueueSums, StreamSums
from dssd.questions.why import KeyAsked


class QuestionCalls:
    """Serves them for the servicer of groups."""

    def __init__(self, questions: Questions) -> None:
        self._questions = questions

    async def why(self, request: groups_pb2.WhyRequest) -> groups_pb2.WhyReply:
        """Explain the state of a record, by stream and offset or by key."""
        offset = request.offset if request.HasField("offset") else None
        if offset is not None and offset > OFFSET_MAX:
            raise IllegalArgument(argument="offset", rule=f"0 to {OFFSET_MAX}")
        if request.HasField("key"):
            if len(request.key) > KEY_BYTES_MAX:
                raise IllegalArgument(argument="key", rule=f"it has at most {KEY_BYTES_MAX} bytes")
            if offset is not None and not request.stream:
                raise IllegalArgument(argument="offset", rule="with a key it needs a stream")
            asked = KeyAsked(request.key, request.topic, request.stream, offset)
            answer = await self._questions.why.of_key(request.group, asked)
        elif request.stream and offset is not None:
            answer = await self._questions.why.of_offset(request.group, request.stream, offset)
        else:
            raise IllegalArgument(argument="record", rule="name a stream and an offset, or a key")
        return groups_pb2.WhyReply(
            records=[_record(each) for each in answer.records],
            looked=[_looked(each) for each in answer.looked],
            next_command=answer.next_command,
        )

    async def stuck(self, request: groups_pb2.StuckRequest) -> groups_pb2.StuckReply:
        """Groups and streams without progress, of one group or of all."""
        after_ms = request.after_ms if request.HasField("after_ms") else STUCK_AFTER_MS
        found = await self._questions.stuck.ask(request.group, after_ms)
        return groups_pb2.StuckReply(stuck=map(stuck_message, found))

    async def verify(
        self, request: groups_pb2.VerifyRequest
    ) -> AsyncGenerator[groups_pb2.VerifyReply, None]:
        """The sums of each stream, and how far a scan is."""
        verify = self._questions.verify
        asked = verify.ask(request.group, tuple(request.streams), scan=request.scan)
        async with aclosing(asked) as answers:
            async for answer in answers:
                if isinstance(answer, StreamSums):
                    yield groups_pb2.VerifyReply(sums=_sums(answer))
                else:
                    progress = encoded(answer, groups_pb2.ScanProgress)
                    yield groups_pb2.VerifyReply(progress=progress)


def stuck_message(stuck: Stuck) -> groups_pb2.Stuck:
    """What does not move, on the wire."""
    return message_of(groups_pb2.Stuck, stuck, level=level_of(stuck.reason))


def _sums(sums: StreamSums) -> groups_pb2.StreamSums:
    fates = encoded(sums.counts, groups_pb2.Fates)
    queues = list(map(_queue_sums, sums.queues))
    return message_of(
        groups_pb2.StreamSums, sums, stream=str(sums.stream), fates=fates, queues=queues
    )


def _queue_sums(sums: QueueSums) -> groups_pb2.QueueSums:
    fates = encoded(sums.counts, groups_pb2.Fates)
    return message_of(groups_pb2.QueueSums, sums, fates=fates)


def _record(answer: RecordAnswer) -> groups_pb2.RecordStanding:
    found = () if answer.record is None else (answer.record,)
    return message_of(groups_pb2.RecordStanding, answer, *found, stream=str(answer.stream))


def _looked(looked: StreamLooked) -> groups_pb2.Looked:
    return message_of(groups_pb2.Looked, looked, stream=str(looked.stream))
