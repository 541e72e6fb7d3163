"""The servicer of `Log`: decodes, calls, encodes.

It knows the running calls, so that a stopping daemon can end each of them in order: a `Produce`
answers what it has read, a `Read` ends where it is, and both end with `Stopping`.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import replace
from typing import Any, Protocol

import grpc.aio

from dss_api.v1 import log_pb2, log_pb2_grpc, types_pb2
from dss_core.errors import IllegalArgument, Stopping, StreamNotFound
from dss_core.filters import TopicFilter
from dss_core.ids import StreamName
from dssd.clock import Clock
from dssd.leaders.dead_letters import DeadLetterPlaces
from dssd.limits import APPEND_BYTES_IN_FLIGHT_MAX
from dssd.log.port import BulkLog
from dssd.log.producer_room import owner_of
from dssd.machines.start_point import OFFSET_MAX
from dssd.rpc.backpressure import AppendBudget
from dssd.rpc.frame_checks import Gates
from dssd.rpc.permits import subject_rule
from dssd.rpc.principal import payer_of, principal_of
from dssd.rpc.produce_call import ProduceCall
from dssd.rpc.publish import RecordPublisher
from dssd.rpc.read_call import ReadCall, Reading
from dssd.rpc.start_points import start_from
from dssd.topics.catalogue import Catalogue

RUNS_TOLD_MAX = 2_048
"""Runs in one answer: some 80 KiB, which cost the loop two milliseconds; a caller asks for more."""


Context = grpc.aio.ServicerContext[Any, Any]


class _Call(Protocol):
    def stop(self) -> None:
        """End gracefully, soon."""


class LogServicer(log_pb2_grpc.LogServicer):
    """Serves `Produce`, `Publish`, `Read` and `Runs`. Its tasks live in the daemon's task group."""

    def __init__(
        self,
        catalogue: Catalogue,
        log: BulkLog,
        clock: Clock,
        tasks: asyncio.TaskGroup,
        dead_letters: DeadLetterPlaces,
    ) -> None:
        self._dead_letters = dead_letters
        self._catalogue = catalogue
        self._log = log
        self._clock = clock
        self._tasks = tasks
        self._gates = Gates(catalogue)
        self._budget = AppendBudget(APPEND_BYTES_IN_FLIGHT_MAX)
        self._publisher = RecordPublisher(log, clock)
        self._calls: set[_Call] = set()
        self._stopping = False

    def stop(self) -> None:
        """End the calls that run; later ones are refused."""
        self._stopping = True
        for call in self._calls:
            call.stop()

    async def Produce(
        self, request_iterator: AsyncIterator[log_pb2.ProduceRequest], context: Context
    ) -> AsyncIterator[log_pb2.ProduceReply]:
        """Frames in, acks and refusals out."""
        caller = principal_of(context)
        owner, rule = owner_of(caller.name), subject_rule(caller)
        budget = self._budget.of(payer_of(context))
        call = ProduceCall(self._gates, self._log, budget, owner, rule)
        with self._running(call):
            reader = self._tasks.create_task(call.read(request_iterator), name="produce reader")
            try:
                incarnation = self._catalogue.incarnation
                async with aclosing(call.replies()) as replies:
                    async for reply in replies:
                        if incarnation:
                            reply.incarnation, incarnation = incarnation, b""
                        yield reply
            finally:
                reader.cancel()
        if self._stopping:
            raise Stopping

    async def Publish(
        self, request: log_pb2.PublishRequest, context: Context
    ) -> log_pb2.PublishReply:
        """Plain records; all or none of those that go to one stream."""
        if self._stopping:
            raise Stopping
        budget = self._budget.of(payer_of(context))
        asked = request.topic, request.records
        published = await self._publisher.publish(self._gates, budget, *asked)
        return log_pb2.PublishReply(published=published)

    async def Read(
        self, request: log_pb2.ReadRequest, context: Context
    ) -> AsyncIterator[log_pb2.ReadReply]:
        """A range of streams, or their tail."""
        reading = self._of_dead_letters(_reading(request), request.dead_letters)
        call = ReadCall(reading, self._catalogue, self._log, self._clock)
        with self._running(call):
            async with aclosing(call.replies()) as replies:
                async for reply in replies:
                    yield reply

    async def Runs(self, request: log_pb2.RunsRequest, context: Context) -> log_pb2.RunsReply:
        """Where in files a range lies.

        Raises:
            StreamNotFound: there is none of this name, or not in this storage topic.
        """
        name = StreamName.parse(request.stream)
        if request.dead_letters:
            stream = self._dead_letters.queue_of(request.dead_letters, name)
        else:
            stream = self._catalogue.id_of(name)
        if stream.storage_topic_id != request.storage_topic_id:
            raise StreamNotFound(stream=request.stream)
        found = await self._log.run_places(
            stream, request.start, request.end, runs_max=RUNS_TOLD_MAX
        )
        return log_pb2.RunsReply(
            files=[
                log_pb2.FileRuns(
                    path=str(each.path.absolute()),
                    base=each.runs[0].base,
                    ends=[run.end for run in each.runs],
                    positions=[run.position for run in each.runs],
                    lengths=[run.length for run in each.runs],
                    checksums=[run.checksum for run in each.runs],
                )
                for each in found
            ]
        )

    def _of_dead_letters(self, reading: Reading, group: str) -> Reading:
        if not group:
            return reading
        if reading.stream is None or reading.follow or reading.matching is not None:
            rule = "those of a single stream are read, without a filter, and not followed"
            raise IllegalArgument(argument="dead_letters", rule=rule)
        return replace(reading, queue=self._dead_letters.queue_of(group, reading.stream))

    @contextmanager
    def _running(self, call: _Call) -> Iterator[None]:
        if self._stopping:
            raise Stopping
        self._calls.add(call)
        try:
            yield
        finally:
            self._calls.discard(call)


def _reading(request: log_pb2.ReadRequest) -> Reading:
    end_time_us = request.end_time_us if request.HasField("end_time_us") else None
    if end_time_us is not None and not 0 <= end_time_us <= OFFSET_MAX:
        raise IllegalArgument(argument="end_time_us", rule="a time since 1970")
    start = request.start if request.HasField("start") else types_pb2.Start(earliest=True)
    stream = StreamName.parse(request.stream) if request.HasField("stream") else None
    everything = stream is not None and not request.filter
    if request.HasField("end_offset") and (stream is None or request.follow):
        rule = "it is that of a single stream, whose tail is not followed"
        raise IllegalArgument(argument="end_offset", rule=rule)
    return Reading(
        matching=None if everything else TopicFilter.parse(request.filter),
        start=start_from(start),
        end_time_us=end_time_us,
        follow=request.follow,
        stream=stream,
        records_max=request.records_max if request.HasField("records_max") else None,
        end_offset=request.end_offset if request.HasField("end_offset") else None,
    )
