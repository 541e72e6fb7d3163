"""One `Produce` call: frames in, answers out, with neither waiting for the other.

A reader checks the frames of each request and hands them to the log, as long as the append budget
lasts. Answers leave in the order of the requests, so in order within a stream, and all that are
ready leave together::

    requests ──► reader: AppendShare, Gate.admit ──► log.append ──► flights (bounded) ──► answers

A *flight* is a group of frames that was handed to the log together and waits for its answers. A
request of many frames goes in several flights, so that neither its checks nor its answers hold the
event loop for long, whatever a client packs together.

Invariant: every frame of a request is answered exactly once, by an ack or a refusal, unless the
call itself ends first. A call that stops answers what it has handed to the log. It hands over no
frame of a producer that already sends over a newer call (`producer_fencing`), and no frame after
one that the log refused for now: otherwise the producer's repeat would find later frames stored.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import NamedTuple, Protocol

from dss_api.v1 import log_pb2
from dss_core import frame as frames
from dss_core.errors import (
    PASSING,
    DssError,
    FrameCorrupt,
    IllegalArgument,
    ProducerTooOld,
    StaleTopicEpoch,
    StorageTopicSealed,
)
from dss_core.frame import Header
from dss_core.routing import SWITCHES
from dssd.log.port import Answered, Append, Appended
from dssd.log.producer_room import NOBODY
from dssd.rpc.backpressure import AppendShare
from dssd.rpc.errors import to_proto
from dssd.rpc.frame_checks import Examined, Gate, Gates, Large
from dssd.rpc.permits import SubjectRule
from dssd.version import version

PRODUCE_ITEMS_IN_FLIGHT_MAX = 256
"""Requests of one Produce call that wait for the disk. One sync covers many of them."""

FLIGHT_FRAMES_MAX = 256
FLIGHT_CHECK_S = 0.001
"""Frames of a request that are checked, appended and answered in one go: a request has room for
20,000 small ones, and no step may hold the loop for 5 ms."""

FLIGHT_FRAME_OVERHEAD_BYTES = 512
"""What a frame in flight costs beside its bytes; keeps many small ones within the bound."""

REPLY_ANSWERS_USUAL = 512
REPLY_REFUSALS_USUAL = 128
"""Answers in one reply: gathering so many takes 2 ms, and a refusal may take 3 KiB of the
message."""


Results = list[Appended | BaseException]


class TakesFrames(Protocol):
    """What a call asks of the log."""

    def begin_append(self, appends: Sequence[Append], answered: Answered) -> None:
        """Append frames, each on its own; tells one result or error a frame, in order."""


class _Refused(NamedTuple):
    partition: int
    sequence: int
    error: DssError


@dataclass(slots=True, eq=False)
class _Flight:
    """A request, or a part of a large one, that waits for the log."""

    gate: Gate | None
    topic_epoch: int
    """As its request has it."""
    checked: list[Header | _Refused]
    """In the order of its frames."""
    budget_bytes: int
    """What it holds of the budget until it is answered."""
    results: Results | None = None
    """One result for each admitted frame; None until the log has answered."""


class _Launched(NamedTuple):
    """What was handed over of some frames."""

    frames: int
    size_bytes: int
    """Of the budget, which the flight gives back by itself."""
    large: tuple[Gate, Large] | None
    """The next frame, where it must be examined in steps."""


class ProduceCall:
    """Run `read` as a task and iterate over `replies`; `stop` ends both gracefully."""

    def __init__(
        self,
        gates: Gates,
        log: TakesFrames,
        budget: AppendShare,
        owner: int = NOBODY,
        rule: SubjectRule | None = None,
    ) -> None:
        self._gates = gates
        self._owner = owner
        self._rule = rule
        self._number = gates.fencing.begin()
        self._log = log
        self._budget = budget
        self._topic = ""
        self._follows_switches = False
        """Whether the client follows a topic to other streams by itself."""
        self._flights: deque[_Flight] = deque()
        self._reading = True
        self._broken: DssError | None = None
        self._changed = asyncio.Event()
        """Set when the oldest flight is answered, or no more will come."""
        self._answered = asyncio.Event()

    def stop(self) -> None:
        """Read no more requests; what was read is answered."""
        self._reading = False
        self._changed.set()
        self._answered.set()

    async def read(self, requests: AsyncIterator[log_pb2.ProduceRequest]) -> None:
        """Read requests until the client ends its side of the call, or is gone."""
        try:
            async for request in requests:
                if not self._reading:
                    return
                if request.topic:
                    self._topic = request.topic
                    self._follows_switches = SWITCHES in request.features
                await self._take_in(list(request.frames), request.topic_epoch)
        except DssError as error:
            self._broken = error
        # Not in a finally: after a programmer's error the call must not end normally.
        self.stop()

    async def replies(self) -> AsyncGenerator[log_pb2.ProduceReply, None]:
        """The answers, until all that was read is answered and no more will be read.

        Raises:
            MessageUnreadable: the last request could not be read.
            DssError: a frame was put off; it may be sent again over another call.
        """
        while await self._answers_wait():
            reply = log_pb2.ProduceReply()
            self._answer_oldest(reply)
            while (
                self._oldest_is_answered()
                and len(reply.acks) + len(reply.refusals) < REPLY_ANSWERS_USUAL
                and len(reply.refusals) < REPLY_REFUSALS_USUAL
            ):
                self._answer_oldest(reply)
            yield reply
        if self._broken is not None:
            raise self._broken

    async def _take_in(self, taken: list[bytes], topic_epoch: int) -> None:
        """Hand the frames of a request to the log once the budget has room for all of them."""
        budget_bytes = sum(map(_cost, taken))
        await self._budget.take(budget_bytes)
        done = 0
        try:
            examined: Examined | None = None
            while done < len(taken) and self._reading:
                following = taken[done : done + FLIGHT_FRAMES_MAX]
                launched = self._launch(following, topic_epoch, examined)
                done += launched.frames
                budget_bytes -= launched.size_bytes
                examined = None
                if launched.large is not None:
                    gate, large = launched.large
                    examined = await gate.examine(large)
                await self._wait_for_answers()
                if done < len(taken):
                    await asyncio.sleep(0)
        finally:
            self._budget.give_back(budget_bytes)

    def _launch(
        self, taken: Sequence[bytes], topic_epoch: int, examined: Examined | None
    ) -> _Launched:
        """Hand a flight over: as many frames as can be checked without holding the loop.

        The first of them may have been examined in steps.
        """
        gate, missing = self._gate()
        checked: list[Header | _Refused] = []
        appends: list[Append] = []
        size_bytes, large = 0, None
        now_s = perf_counter()
        until = now_s + FLIGHT_CHECK_S
        for frame in taken:
            try:
                if gate is None:
                    raise missing or _no_topic()
                if self._rule is not None:
                    self._rule.check(gate.topic, frame)
                admitted = gate.admit(frame, topic_epoch, self._owner, examined)
                if isinstance(admitted, Large):
                    large = gate, admitted
                    break
                header, append = admitted
                share = gate.topic.topic_id, self._owner
                self._gates.fencing.check(header.producer_id, share, self._number, now_s)
            except DssError as error:
                checked.append(_refused(frame, self._understood(gate, error)))
            else:
                checked.append(header)
                appends.append(append)
            examined = None
            size_bytes += _cost(frame)
            if perf_counter() > until:
                break
        if checked:
            self._hand_over(_Flight(gate, topic_epoch, checked, size_bytes), appends)
        return _Launched(len(checked), size_bytes, large)

    def _hand_over(self, flight: _Flight, appends: Sequence[Append]) -> None:
        self._flights.append(flight)
        if appends:
            self._log.begin_append(appends, partial(self._log_answered, flight))
        else:
            self._log_answered(flight, [])

    def _log_answered(self, flight: _Flight, results: Results) -> None:
        # Even if the client is gone and reads no answers.
        self._budget.give_back(flight.budget_bytes)
        flight.results = results
        self._end_where_put_off(results)
        if self._flights and self._flights[0] is flight:
            self._changed.set()

    def _end_where_put_off(self, results: Results) -> None:
        """Accept no more frames after a refusal that makes the producer send again.

        If the log does not know the producer yet, it would store the next frame although this one
        is missing.
        """
        put_off = next((each for each in results if isinstance(each, PASSING)), None)
        if put_off is not None:
            self._broken = put_off
            self.stop()

    def _gate(self) -> tuple[Gate | None, DssError | None]:
        if not self._topic:
            return None, None
        try:
            return self._gates.of(self._topic), None
        except DssError as error:
            return None, error

    async def _wait_for_answers(self) -> None:
        while self._reading and len(self._flights) >= PRODUCE_ITEMS_IN_FLIGHT_MAX:
            self._answered.clear()
            await self._answered.wait()

    async def _answers_wait(self) -> bool:
        """Wait for answers to give; False where there will be none."""
        while not self._oldest_is_answered():
            if not (self._reading or self._flights):
                return False
            self._changed.clear()
            await self._changed.wait()
        return True

    def _oldest_is_answered(self) -> bool:
        return bool(self._flights) and self._flights[0].results is not None

    def _answer_oldest(self, reply: log_pb2.ProduceReply) -> None:
        flight = self._flights.popleft()
        self._answered.set()
        self._answer(flight, reply)

    def _answer(self, flight: _Flight, reply: log_pb2.ProduceReply) -> None:
        following = iter(flight.results or ())
        for item in flight.checked:
            if isinstance(item, _Refused):
                _refuse(reply, item)
                continue
            result = next(following)
            assert flight.gate is not None, "only a gate lets frames through"
            if isinstance(result, Appended):
                reply.acks.add(
                    partition=item.partition,
                    sequence=item.sequence,
                    ordinal=flight.gate.ordinal_at(flight.topic_epoch),
                    base_offset=result.base_offset,
                    records=result.records,
                    append_time_us=result.append_time_us,
                    repeated=result.repeated,
                    durability=flight.gate.topic.durability,
                )
            elif isinstance(result, DssError):
                named = flight.gate.refusal(result, item.partition, flight.topic_epoch)
                told = self._understood(flight.gate, named)
                _refuse(reply, _Refused(item.partition, item.sequence, told))
            else:
                raise result

    def _understood(self, gate: Gate | None, error: DssError) -> DssError:
        """The refusal in a form that the client understands.

        An older client compares only epochs, so it would take a topic that grew for one that was
        created again. It gets ProducerTooOld instead.
        """
        if self._follows_switches or gate is None:
            return error
        topic = gate.topic
        was_switched = isinstance(error, StaleTopicEpoch) and topic.produce_ordinal > 0
        if was_switched or isinstance(error, StorageTopicSealed):
            return ProducerTooOld(topic=topic.name, version=version())
        return error


def _cost(frame: bytes) -> int:
    return len(frame) + FLIGHT_FRAME_OVERHEAD_BYTES


def _no_topic() -> DssError:
    return IllegalArgument(argument="topic", rule="the first request of a call must name one")


def _refuse(reply: log_pb2.ProduceReply, refused: _Refused) -> None:
    reply.refusals.add(
        partition=refused.partition, sequence=refused.sequence, error=to_proto(refused.error)
    )


def _refused(frame: bytes, error: DssError) -> _Refused:
    try:
        header = frames.read_header(frame)
    except FrameCorrupt:  # without a readable header the frame cannot be named
        return _Refused(0, 0, error)
    return _Refused(header.partition, header.sequence, error)
