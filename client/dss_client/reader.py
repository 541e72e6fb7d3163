"""Plain reading of a log: no group, no acks, no session.

Invariant: records of a stream come in order, each once; between streams there is no order. What
cannot be read is told at once, each range once, and raised at the end. After a lost connection a
reader that follows resumes each stream where it was; any other ends with an error. A stream whose
reads fail keeps no other stream waiting.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import aclosing
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from dss_client._known_data import KnownData
from dss_client._outage_log import Outage
from dss_client._start_point import Start, offset_in, start_to_wire, time_us
from dss_client.record import Batch, Record
from dss_core.errors import (
    PASSING,
    DssError,
    IllegalArgument,
    LogUnreadable,
    OffsetOutOfRange,
    StreamDamaged,
    StreamNotFound,
)
from dss_core.filters import TopicFilter
from dss_core.ids import StreamName
from dss_core.progress import Ranges, clipped, normalised

READ_AGAIN_S = 2.0
"""After it a reader that follows tries a stream again whose reads failed."""


if TYPE_CHECKING:
    import grpc.aio

    from dss_api.v1 import log_pb2
    from dss_client._connection import Connection

    ReadCall = grpc.aio.UnaryStreamCall[log_pb2.ReadRequest, log_pb2.ReadReply]

    OnDamage = Callable[[StreamDamaged], None]
    OnLost = Callable[[str, int, int], None]
    """A stream, and the offsets from the first up to the second."""

_OFFSET_END = 1 << 63
_LOG = logging.getLogger("dss_client")


class ReadPiece:
    """What the records of one answer share."""

    __slots__ = ("stream",)

    def __init__(self, stream: str) -> None:
        self.stream = stream


class Reader:
    """Made by `Client.read`; iterate over it by record, or over its `batches`."""

    def __init__(
        self,
        connection: "Connection",
        request: "log_pb2.ReadRequest",
        on_damage: "OnDamage | None" = None,
        on_lost: "OnLost | None" = None,
        *,
        progress: bool = False,
    ) -> None:
        self._connection = connection
        self._request = request
        self._shows_progress = progress
        self._on_damage = on_damage or _logged
        self._on_lost = on_lost
        self.streams: tuple[str, ...] = ()
        """Every stream that is read, once the first answers came."""
        self._damage: StreamDamaged | None = None
        self._next: dict[str, int] = {}
        """By stream: behind the last record that was handed out, or told as unreadable or lost."""
        self._left = request.records_max if request.HasField("records_max") else None
        self._outage = Outage("the reading", connection.endpoint.text)
        self._data = KnownData("the reading")
        self._began_us = time.time_ns() // 1_000

    async def __aiter__(self) -> AsyncGenerator[Record, None]:
        """Records, one by one.

        Raises:
            StreamDamaged: all the rest came; these were the first records that cannot be read.
            DssError: the daemon refuses; or the connection was lost, and this does not follow.
        """
        async for batch in self.batches():
            for record in batch:
                yield record

    async def batches(self) -> AsyncGenerator[Batch, None]:
        """Records as columns.

        Raises:
            StreamDamaged: all the rest came; these were the first records that cannot be read.
            DssError: the daemon refuses; or the connection was lost, and this does not follow.
            LibraryMissing: a progress bar is wanted, and there is no rich.
        """
        async with aclosing(self._shown() if self._shows_progress else self._batches()) as batches:
            async for batch in batches:
                yield batch

    async def _shown(self) -> AsyncGenerator[Batch, None]:
        """The batches, with a bar that shows how far they are."""
        from dss_client._reading_bar import ReadingBar

        bar = await ReadingBar.begun(self._connection, self._request)
        complete = False
        try:
            async with aclosing(self._batches()) as batches:
                async for batch in batches:
                    bar.advance(batch)
                    yield batch
            complete = True
        finally:
            bar.end(complete=complete)

    async def _batches(self) -> AsyncGenerator[Batch, None]:
        from dss_client._backoff import Backoff

        backoff = Backoff()
        answers = self._answers(self._request)
        while True:
            try:
                async with aclosing(answers):
                    async for batch in answers:
                        backoff.reset()
                        yield batch
                break
            except DssError as error:
                if not self._goes_on_after(error):
                    raise self._connection.outages.as_told(error) from error.__cause__
                self._outage.began(error)
            await asyncio.sleep(backoff.pause_s())
            answers = self._resumed() if self.streams else self._answers(self._request)
        if self._damage is not None:
            raise self._damage

    def _goes_on_after(self, error: DssError) -> bool:
        if self.streams:
            return self._request.follow and isinstance(error, PASSING)
        # Nothing was read yet, so it may begin again.
        return self._connection.outages.are_waited_out(error)

    async def _answers(self, request: "log_pb2.ReadRequest") -> AsyncGenerator[Batch, None]:
        """What one call gives.

        Raises:
            DssError: the daemon refuses, or the connection was lost.
        """
        call = self._connection.log.Read(request)
        try:
            while self._left != 0 and (reply := await self._reply(call)) is not None:
                batch = self._take(reply)
                if batch is not None:
                    yield batch
        finally:
            call.cancel()

    async def _reply(self, call: "ReadCall") -> "log_pb2.ReadReply | None":
        from dss_client._connection import ConnectionLostError

        try:
            reply = await self._connection.read_or_end(call)
        except ConnectionLostError as lost:
            raise lost.reason from lost
        self._outage.ended()
        if reply is not None and reply.streams:
            self._data.note(reply.incarnation)
            known = frozenset(self.streams)
            self.streams = (*self.streams, *(each for each in reply.streams if each not in known))
        return reply

    def _take(self, reply: "log_pb2.ReadReply") -> Batch | None:
        """What of an answer was not handed out yet; what it says of damage is told first."""
        told_to = self._next.get(reply.stream, 0)
        batch = self._batch(reply) if reply.frames else None
        damaged = tuple((each.start, each.end) for each in reply.damaged)
        for start, end in clipped(damaged, told_to, _OFFSET_END):
            self._next[reply.stream] = max(end, self._next.get(reply.stream, 0))
            self._tell(StreamDamaged(stream=reply.stream, offset=start, last=end - 1))
        lost = tuple((each.start, each.end) for each in reply.lost)
        for start, end in clipped(lost, told_to, _OFFSET_END):
            self._next[reply.stream] = max(end, self._next.get(reply.stream, 0))
            if self._on_lost is not None:
                self._on_lost(reply.stream, start, end)
        return batch

    def _tell(self, damage: StreamDamaged) -> None:
        self._damage = self._damage or damage
        self._on_damage(damage)

    def _batch(self, reply: "log_pb2.ReadReply") -> Batch | None:
        """What of an answer was not handed out yet; from here on it is."""
        from dss_core.decode import decode

        mask = tuple((each.start, each.end) for each in reply.mask)
        if reply.stream in self._next:
            mask = ((0, self._next[reply.stream]), *mask)
        decoded = decode(reply.frames, mask)
        if self._left is not None and decoded.records > self._left:
            decoded = decode(reply.frames, (*mask, (decoded.offsets[self._left], _OFFSET_END)))
        if self._left is not None:
            self._left -= decoded.records
        behind = _behind_shown(decoded.next_offset, mask)
        self._next[reply.stream] = max(behind, self._next.get(reply.stream, 0))
        return Batch(ReadPiece(reply.stream), decoded) if decoded.records else None

    # After a lost connection.

    async def _resumed(self) -> AsyncGenerator[Batch, None]:
        """What came since the connection was lost, and what comes.

        The tail of every stream is opened first; then the gap before it is read, one stream after
        the other, and no further: what is behind it comes in the order of the tail, older storage
        topics first. A stream whose gap cannot be read now is tried again while the others go on;
        nothing behind its gap is handed out.

        Raises:
            DssError: the daemon refuses, or the connection was lost.
        """
        known = frozenset(self.streams)
        aside: dict[str, _Gap] = {}
        async with aclosing(self._tail(aside)) as tail:
            async for reply in tail:
                gaps = dict(aside) if reply is None else _gaps(reply, known)
                for stream, gap in gaps.items():
                    async with aclosing(self._missed(stream, gap)) as missing:
                        try:
                            async for missed in missing:
                                yield missed
                            aside.pop(stream, None)
                        except LogUnreadable as error:
                            _LOG.warning("%s is tried again: %s", stream, error)
                            # To its end: what the tail has of it meanwhile is not handed out.
                            aside[stream] = gap._replace(end=None)
                if reply is not None and reply.stream not in aside:
                    batch = self._take(reply)
                    if batch is not None:
                        yield batch
                if self._left == 0:
                    return

    async def _tail(
        self, aside: Collection[str]
    ) -> "AsyncGenerator[log_pb2.ReadReply | None, None]":
        """Answers from now on; and None each time that something aside is to be tried again.

        Raises:
            DssError: the daemon refuses, or the connection was lost.
        """
        call = self._connection.log.Read(self._again(follow=True, now=True))
        reading: asyncio.Task[log_pb2.ReadReply | None] | None = None
        again_at = 0.0
        try:
            while True:
                # A task of its own: a timeout that cancelled it would end the call.
                reading = reading or asyncio.create_task(self._reply(call), name="dss tail")
                left_s = max(again_at - monotonic(), 0) if aside else None
                await asyncio.wait([reading], timeout=left_s)
                if reading.done():
                    (reply, reading) = (reading.result(), None)
                    if reply is None:
                        return
                    yield reply
                if aside and monotonic() >= again_at:
                    yield None
                    again_at = monotonic() + READ_AGAIN_S
        finally:
            call.cancel()
            if reading is not None:
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)

    async def _missed(self, stream: str, gap: "_Gap") -> AsyncGenerator[Batch, None]:
        """One stream, from where it was up to its tail.

        Raises:
            DssError: the daemon refuses, or the connection was lost.
        """
        if gap.end is not None and self._next.get(stream, 0) >= gap.end:
            return
        request = self._gap_request(stream, gap)
        try:
            async for batch in self._answers(request):
                yield batch
        except StreamNotFound:
            return  # its topic was removed meanwhile
        except OffsetOutOfRange as error:
            if not _is_expired(error):
                raise
            request.start.earliest = True
            async for batch in self._answers(request):
                yield batch

    def _gap_request(self, stream: str, gap: "_Gap") -> "log_pb2.ReadRequest":
        request = self._again(follow=False)
        request.stream = stream
        if gap.end is not None:
            request.end_offset = gap.end
        if stream in self._next:
            request.start.offset = self._next[stream]
        elif gap.since_birth:
            request.start.earliest = True
        elif request.start.now:
            request.start.time_us = self._began_us
        return request

    def _again(self, *, follow: bool, now: bool = False) -> "log_pb2.ReadRequest":
        """The request, for what is left of it."""
        from dss_api.v1 import log_pb2

        request = log_pb2.ReadRequest()
        request.CopyFrom(self._request)
        request.follow = follow
        if now:
            request.start.now = True
        if self._left is not None:
            request.records_max = self._left
        return request


class _Gap(NamedTuple):
    """What a stream lacks before its tail, after a lost connection."""

    since_birth: bool
    """It came while the connection was lost."""
    end: int | None
    """Where the tail begins; None where the daemon is older and does not tell."""


def _gaps(reply: "log_pb2.ReadReply", known: Collection[str]) -> dict[str, _Gap]:
    """The gaps of the streams that an answer names."""
    ends = reply.starts or [None] * len(reply.streams)
    named = zip(reply.streams, ends, strict=True)
    return {each: _Gap(each not in known, end) for each, end in named}


def _behind_shown(next_offset: int, mask: Ranges) -> int:
    """Behind the last record of an answer that is not hidden.

    What is hidden at its end may have come after the end of what was asked for, and is still to
    come.
    """
    ranges = normalised(mask)
    if ranges and ranges[-1][1] >= next_offset:
        return min(ranges[-1][0], next_offset)
    return next_offset


_HIGHEST_COUNT = (1 << 64) - 1
"""What the wire can say."""


def _logged(damage: StreamDamaged) -> None:
    _LOG.warning("%s: %s", damage.code, damage.message)


def _is_expired(error: OffsetOutOfRange) -> bool:
    """Whether the offset lies before the first record that is kept."""
    offset, start = error.fields.get("offset", ""), error.fields.get("start", "")
    return offset.isdecimal() and start.isdecimal() and int(offset) < int(start)


def read_request(
    filter: str | None,
    *,
    start: Start,
    end: Start,
    follow: bool,
    stream: str | None,
    records_max: int | None,
    dead_letters: str = "",
) -> "log_pb2.ReadRequest":
    """The request of a reading.

    Raises:
        IllegalFilter, IllegalTime, IllegalName, IllegalArgument: an argument breaks its rule.
    """
    from dss_api.v1 import log_pb2

    if filter is None and stream is None:
        raise IllegalArgument(argument="filter", rule="a filter or a stream says what to read")
    if records_max is not None and records_max < 0:
        raise IllegalArgument(argument=f"records_max {records_max}", rule="it is not negative")
    end_offset = offset_in(end)
    return log_pb2.ReadRequest(
        filter="" if filter is None else TopicFilter.parse(filter).text,
        start=start_to_wire(start),
        end_time_us=None if end is None or end_offset is not None else time_us(end),
        end_offset=end_offset,
        follow=follow,
        stream=None if stream is None else str(StreamName.parse(stream)),
        # Of more there are not so many.
        records_max=None if records_max is None else min(records_max, _HIGHEST_COUNT),
        dead_letters=dead_letters,
    )
