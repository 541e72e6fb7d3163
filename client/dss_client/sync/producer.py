"""Publishing from threads.

Records are gathered in frames in the thread that hands them over, by the code that does so in the
loop; the loop is given whole frames. Invariant: what was handed over is sent in that order; its
outcome is told as that of a record of the producer in the loop.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from time import time_ns
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack, cast

from dss_client._pending_frame import PendingFrame
from dss_client._stop import the_stop
from dss_client.limits import GATHER_MS
from dss_client.producer import Ack, BytesLike, HeadersArgument, RecordFields, Sender
from dss_client.producer import Producer as AsyncProducer
from dss_core.errors import BufferFull, DssError

if TYPE_CHECKING:
    from dss_client._produce_call import ProduceCall
    from dss_client._routes import Routes
    from dss_client._task_spawner import Spawn
    from dss_client.sync._portal import Portal

OUTBOX_OF_BUFFER = 0.25
"""The part of a producer's buffer for records that threads handed over and the loop has not
taken."""


class Delivery:
    """The outcome of one record that was handed over; `wait` for its `Ack`."""

    __slots__ = ("_frame", "_row")

    def __init__(self, frame: PendingFrame, row: int) -> None:
        self._frame = frame
        self._row = row

    def done(self) -> bool:
        """Whether it is stored, or has failed."""
        return self._frame.settled

    @property
    def offset(self) -> int | None:
        """Its offset in its stream once it is stored."""
        frame, row = self._frame.place_of(self._row)
        ack = frame.ack
        return None if ack is None else ack.offset + row

    def wait(self) -> Ack:
        """Wait until it is stored.

        Raises:
            DssError: it failed; `OutcomeUnknown` where nobody knows whether it was stored.
        """
        outbox = cast("_ThreadFrame", self._frame).outbox
        return outbox.portal.run(outbox.outcome_of(self._frame, self._row))


class _ThreadFrame(PendingFrame):
    """A frame that threads gather; the outcomes of its records are awaited in the loop through
    it."""

    __slots__ = ("outbox",)

    def __init__(self, outbox: "_Outbox", timestamp_us: int, subject: str) -> None:
        super().__init__(timestamp_us, subject)
        self.outbox = outbox


class _Outbox:
    """Frames that threads gather and the loop has not taken yet."""

    def __init__(
        self, portal: "Portal", call: "ProduceCall", spawn: "Spawn", buffer_bytes: int
    ) -> None:
        self.portal = portal
        self.lock = threading.Lock()
        """Held by a thread that hands over a record, and by the loop while it takes frames."""
        self.routes: Routes = call.routes
        self.open_frames: list[PendingFrame | None] = [None] * len(call.open_frames)
        self.limit_bytes = int(buffer_bytes * OUTBOX_OF_BUFFER)
        self.room_bytes = self.limit_bytes
        self._call = call
        self._spawn = spawn
        self._closed: deque[tuple[Routes, int, PendingFrame]] = deque()  # bounded by limit_bytes
        self._order = asyncio.Lock()
        self._awake = False
        self._failed: DssError | None = None

    # Called by a `Sender`, in a thread that holds the lock.

    def begin(self, partition: int, subject: str) -> PendingFrame:
        """An open frame for a partition that has none; its first record has the subject.

        Raises:
            DssError: nothing can be published any more.
        """
        failed = self._failed or self._call.failed
        if failed is not None:
            raise failed
        self.portal.check_process()
        frame = self.open_frames[partition] = _ThreadFrame(self, time_ns() // 1_000, subject)
        if not self._awake:
            self._awake = True
            self.portal.soon(self._begin_taking)
        return frame

    def close(self, partition: int) -> None:
        """The open frame of the partition takes no further record."""
        frame = self.open_frames[partition]
        if frame is not None:
            self.open_frames[partition] = None
            self._closed.append((self.routes, partition, frame))

    def refuse_unless_empty(self) -> None:
        """Let a record into an empty outbox only, however large it is.

        Raises:
            BufferFull: there is something in it.
        """
        if self.room_bytes < self.limit_bytes:
            raise BufferFull(limit=self.limit_bytes)

    # Called in the loop.

    def _begin_taking(self) -> None:
        self._spawn(self._keep_taking(), "dss outbox")

    async def _keep_taking(self) -> None:
        taken = True
        while taken:
            taken = await self.take_all()
            await asyncio.sleep(GATHER_MS / 1_000)

    async def take_all(self) -> bool:
        """Give every frame to the producer's call, in order; returns whether there was any."""
        async with self._order:
            any_here = self._close_all()
            while self._closed:
                routes, partition, frame = self._closed[0]
                size_bytes = frame.size_bytes
                await self._call.room_for(size_bytes)
                try:
                    self._call.add(routes, partition, frame)
                except DssError as error:
                    self._failed = error
                    frame.settle(None, error)
                self._closed.popleft()
                with self.lock:
                    self.room_bytes += size_bytes
                if self._call.crowded:
                    await self._call.pause()
        return any_here

    def _close_all(self) -> bool:
        with self.lock:
            for partition in range(len(self.open_frames)):
                self.close(partition)
            if self.routes is not self._call.routes:
                # The topic has moved.
                self.routes = self._call.routes
                self.open_frames = [None] * len(self._call.open_frames)
            # The next thread that opens a frame wakes the loop, unless the loop looks again by
            # itself.
            self._awake = bool(self._closed)
            return self._awake

    async def outcome_of(self, frame: PendingFrame, row: int) -> Ack:
        """Wait until a record is stored; raises as `Delivery.wait` does."""
        frame.awaited = True
        await self.take_all()
        return await frame.outcome_of(row)

    async def flush(self) -> None:
        """Wait until everything is stored, or has failed; raises as `Producer.flush` does."""
        await self.take_all()
        await self._call.flush()
        if self._failed is not None:
            raise self._failed


class _ThreadSender(Sender[Delivery]):
    """Gathers in the thread that calls it."""

    def __init__(self, topic: str, outbox: _Outbox) -> None:
        super().__init__(Delivery)
        self.topic = topic
        self.into = outbox


class Producer:
    """Made by `Client.producer`; open inside its ``with`` block."""

    def __init__(
        self, portal: "Portal", producer: AsyncProducer, spawn: "Spawn", buffer_bytes: int
    ) -> None:
        self.topic = producer.topic
        self._portal = portal
        self._producer = producer
        self._make_outbox = partial(_Outbox, portal, spawn=spawn, buffer_bytes=buffer_bytes)
        self._outbox: _Outbox
        self._lock: threading.Lock
        self._gather: Callable[..., Delivery]

    def __enter__(self) -> Self:
        """Describe the topic and start sending.

        Raises:
            TopicNotFound: there is none of this name.
            Unreachable: no daemon answers.
        """
        self._portal.run(self._producer.__aenter__())
        outbox = self._outbox = self._make_outbox(self._producer.call)
        self._lock = outbox.lock
        self._gather = _ThreadSender(self.topic, outbox).send_nowait
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Flush, then stop; after an exception, stop without waiting.

        Raises:
            DssError: something failed that nobody was told about.
        """
        try:
            if error is None or the_stop.is_of(error):
                self.flush()
        finally:
            self._portal.run(self._producer.__aexit__(kind, error, trace))

    def send(self, payload: bytes, **fields: Unpack[RecordFields]) -> Ack:
        """Publish one record and wait until it is stored.

        Raises:
            DssError: it was not stored; `OutcomeUnknown` where nobody knows.
        """
        return self.enqueue(payload, **fields).wait()

    def enqueue(
        self,
        payload: bytes,
        *,
        key: bytes | None = None,
        subject: str | None = None,
        headers: HeadersArgument | None = None,
        timestamp: datetime | None = None,
    ) -> Delivery:
        """Hand over one record, with its `RecordFields`, waiting for room in the buffer.

        It does not wait for storage: the handle tells what became of it.

        Raises:
            DssError: the record breaks a rule, or nothing can be published any more.
        """
        # Fields by name, as in `send_nowait`: gathered in a dictionary they cost half as much
        # again as the record.
        while True:
            try:
                with self._lock:
                    return self._gather(
                        payload, key=key, subject=subject, headers=headers, timestamp=timestamp
                    )
            except BufferFull:
                self._portal.run(self._outbox.take_all())

    def send_nowait(
        self,
        payload: bytes,
        *,
        key: bytes | None = None,
        subject: str | None = None,
        headers: HeadersArgument | None = None,
        timestamp: datetime | None = None,
    ) -> Delivery:
        """Hand over one record, with its `RecordFields`, without waiting.

        Raises:
            BufferFull: wait for something first, `flush` for example, or use `enqueue`.
            DssError: the record breaks a rule, or nothing can be published any more.
        """
        with self._lock:
            return self._gather(
                payload, key=key, subject=subject, headers=headers, timestamp=timestamp
            )

    def send_columns(
        self,
        payloads: Sequence[BytesLike],
        keys: Sequence[bytes | None] | None = None,
        subjects: Sequence[str] | str | None = None,
        headers: Sequence[HeadersArgument | None] | None = None,
        timestamps: Sequence[int] | None = None,
    ) -> list[Ack]:
        """Publish many records given as columns, and wait until all are stored.

        Raises:
            IllegalArgument: the columns differ in length, or a value is not bytes.
            DssError: some of it was not stored; what was is not undone.
        """

        async def sent() -> list[Ack]:
            await self._outbox.take_all()
            columns: tuple[Any, ...] = (payloads, keys, subjects, headers, timestamps)
            return await self._producer.send_columns(*columns)

        return self._portal.run(sent())

    def flush(self) -> None:
        """Wait until everything handed over so far is stored, or has failed.

        Raises:
            DssError: something failed since the last flush, and nobody waited for it.
        """
        self._portal.run(self._outbox.flush())
