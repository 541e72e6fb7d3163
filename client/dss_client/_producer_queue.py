"""The frames of one producer for one stream: gathering, waiting, in flight, settled.

A machine without I/O. Sequences are given when a frame is sent for the first time, and a frame
keeps its own until it is settled, so that sending it again is harmless::

    waiting ──► in flight (at most WINDOW) ──► settled: acked or failed
       ▲            │ lost: sent again, in order, with the same sequences
       └────────────┘ an earlier frame was refused: renumbered behind it

Invariant: frames are stored in the order of their records; every frame is settled exactly once;
`size_bytes` of everything unsettled is what the producer counts.
"""

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from dss_core.errors import DssError, SequenceGap
from dss_core.limits import PRODUCER_WINDOW_SEQUENCES

if TYPE_CHECKING:
    from dss_core.columns import Columns
    from dss_core.rows_layout import Headers


@dataclass(frozen=True, slots=True)
class Ack:
    """The daemon has stored what was sent."""

    stream: str
    """As TOPIC/ORDINAL/PARTITION."""
    offset: int
    """Of the record, or of the first of `records`."""
    append_time_us: int
    """When the daemon stored it, microseconds since 1970."""
    durability: str
    """What this promises: ``sync``, it is on disk; ``os``, it is lost with the machine."""
    repeated: bool
    """Whether it had been stored before: this answers a resend after a lost connection."""
    records: int = 1

    @property
    def append_time(self) -> datetime:
        """When the daemon stored it."""
        from dss_client.record import moment

        return moment(self.append_time_us)


class PendingFrame:
    """Records of one stream that travel together."""

    __slots__ = (
        "ack",
        "awaited",
        "columns",
        "encoded",
        "error",
        "hashes",
        "headers",
        "in_doubt",
        "keys",
        "parts",
        "payloads",
        "places",
        "sequence",
        "size_bytes",
        "subject",
        "subjects",
        "timestamp_us",
        "timestamps_us",
        "waiters",
        "whole",
    )

    def __init__(self, timestamp_us: int, subject: str = "") -> None:
        self.timestamp_us = timestamp_us
        """When its first record was gathered."""
        self.payloads: list[bytes] = []
        self.keys: list[bytes | None] = []
        self.hashes: list[int | None] = []
        self.subject = subject
        """Of every record, as long as `subjects` is None."""
        self.subjects: list[str] | None = None
        self.headers: dict[int, Headers] = {}
        """By row; most records have none."""
        self.timestamps_us: dict[int, int] = {}
        """By row, where the user chose one."""
        self.columns: Columns | None = None
        """Set for a frame that was not gathered record by record."""
        self.size_bytes = 0
        self.sequence = 0
        self.encoded = b""
        self.in_doubt = False
        """Whether it was sent over a connection that was lost before its answer came."""
        self.ack: Ack | None = None
        self.error: DssError | None = None
        self.awaited = False
        """Whether someone will be told of its failure."""
        self.parts: tuple[PendingFrame, ...] = ()
        """Set where its records were routed anew, to several streams."""
        self.places: dict[int, tuple[PendingFrame, int]] = {}
        """By row, where it has parts: the part and the row in it."""
        self.whole: PendingFrame | None = None
        """What it is a part of."""
        self.waiters: list[asyncio.Future[None]] = []

    @classmethod
    def of(cls, columns: "Columns", size_bytes: int) -> "PendingFrame":
        """A frame of columns that fit into one."""
        pending = cls(0)
        pending.columns = columns
        pending.size_bytes = size_bytes
        return pending

    def note_subject(self, row: int, subject: str) -> None:
        """The record at the row has the subject, which is not that of all before it."""
        if self.subjects is None:
            self.subjects = [self.subject] * row
        self.subjects.append(subject)

    def note_rare(self, row: int, headers: "Headers | None", timestamp_us: int | None) -> None:
        """The record at the row has headers, or a time of its own."""
        if headers is not None:
            self.headers[row] = headers
        if timestamp_us is not None:
            self.timestamps_us[row] = timestamp_us

    @property
    def settled(self) -> bool:
        """Whether it was acknowledged or has failed."""
        return self.ack is not None or self.error is not None

    @property
    def is_awaited(self) -> bool:
        """Whether someone will be told of its failure, or of that of what it is a part of."""
        return self.awaited or (self.whole is not None and self.whole.is_awaited)

    def split(
        self, parts: "Mapping[int, Columns]", rows: Mapping[int, list[int]]
    ) -> "dict[int, PendingFrame]":
        """Its records as frames of their own, which settle this one once all of them are."""
        made: dict[int, PendingFrame] = {}
        for partition, columns in parts.items():
            # The whole keeps the bytes that are counted, and gives them back when it is settled.
            part = made[partition] = PendingFrame.of(columns, 0)
            part.whole = self
            self.places.update((row, (part, at)) for at, row in enumerate(rows[partition]))
        self.parts = tuple(made.values())
        return made

    def to_columns(self) -> "Columns":
        """The records, as they are built into a frame."""
        from dss_core.columns import Columns

        if self.columns is not None:
            return self.columns
        rows = range(len(self.payloads))
        times = self.timestamps_us
        return Columns(
            payloads=self.payloads,
            keys=self.keys,
            subjects=self.subject if self.subjects is None else self.subjects,
            headers=[self.headers.get(row) for row in rows] if self.headers else None,
            timestamps_us=(
                [times.get(row, self.timestamp_us) for row in rows] if times else self.timestamp_us
            ),
            key_hashes=self.hashes,
        )

    async def outcomes(self) -> list[Ack]:
        """Wait until it is settled; one ack a frame that it was stored as.

        Raises:
            DssError: it failed, or a part of it.
        """
        self.awaited = True
        await self.wait()
        if self.error is not None:
            raise self.error
        return self._acks()

    async def outcome_of(self, row: int) -> Ack:
        """Wait until it is settled; the ack of the record at the row.

        Raises:
            DssError: the record was not stored, or nobody knows.
        """
        self.awaited = True
        await self.wait()
        part, row = self.place_of(row)
        if part.error is not None:
            raise part.error
        assert part.ack is not None
        return replace(part.ack, offset=part.ack.offset + row, records=1)

    def place_of(self, row: int) -> "tuple[PendingFrame, int]":
        """The frame that the record at the row travels in, and its row there."""
        if not self.parts:
            return self, row
        part, row = self.places[row]
        return part.place_of(row)

    def _acks(self) -> list[Ack]:
        if self.parts:
            return [ack for part in self.parts for ack in part._acks()]
        assert self.ack is not None
        return [self.ack]

    async def wait(self) -> None:
        """Wait until it is settled, one way or the other."""
        if not self.settled:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.waiters.append(waiter)
            await waiter

    def settle(self, ack: Ack | None, error: DssError | None) -> None:
        """Give it its outcome, wake who waits for it, let go of its records."""
        assert not self.settled
        self.ack = ack
        self.error = error
        self.columns = None
        self.encoded = b""
        self.payloads, self.keys, self.hashes, self.subjects = [], [], [], None
        self.headers, self.timestamps_us = {}, {}
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_result(None)


class FrameQueue:
    """One stream's frames."""

    __slots__ = (
        "_acked_to",
        "_refused_at",
        "_resend",
        "_returning",
        "in_flight",
        "next_sequence",
        "partition",
        "producer_id",
        "waiting",
    )

    def __init__(self, partition: int, producer_id: bytes = b"") -> None:
        self.partition = partition
        self.producer_id = producer_id
        """What its frames are numbered under."""
        self.next_sequence = 0
        self.waiting: deque[PendingFrame] = deque()
        """Full, or due to be sent; bounded by the producer's buffer."""
        self.in_flight: dict[int, PendingFrame] = {}
        """By sequence, in their order."""
        self._resend: deque[PendingFrame] = deque()
        self._returning = 0
        """After a refusal: how many frames behind it have not come back yet."""
        self._refused_at = 0
        self._acked_to = 0

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits and nothing is in flight."""
        return not (self.waiting or self._resend or self._returning or self.in_flight)

    def has_work(self) -> bool:
        """Whether `take` would give a frame now."""
        return bool(self._resend) or (
            bool(self.waiting)
            and not self._returning
            and len(self.in_flight) < PRODUCER_WINDOW_SEQUENCES
        )

    def take(self) -> PendingFrame | None:
        """The next frame to send, if one may be sent; a new one has its sequence now."""
        if self._resend:
            return self._resend.popleft()
        if not self.waiting or self._returning or len(self.in_flight) >= PRODUCER_WINDOW_SEQUENCES:
            return None
        frame = self.waiting.popleft()
        frame.sequence = self.next_sequence
        self.next_sequence += 1
        self.in_flight[frame.sequence] = frame
        return frame

    def acked(self, sequence: int) -> PendingFrame | None:
        """The frame of an ack; None for an answer that came twice."""
        frame = self.in_flight.pop(sequence, None)
        if frame is not None:
            self._acked_to = max(self._acked_to, sequence + 1)
            self._came_back()
        return frame

    def refused(self, sequence: int, error: DssError) -> PendingFrame | None:
        """The frame that failed by this refusal; None where it will be sent again instead.

        The daemon stored neither the refused frame nor those behind it, whose sequences now follow
        a gap. They are refused too, and are sent again under new sequences.
        """
        frame = self.in_flight.get(sequence)
        if frame is None:
            return None
        if self._returning and isinstance(error, SequenceGap):
            self._came_back()
            return None
        del self.in_flight[sequence]
        if self._returning:
            self._came_back()
        elif error.definite:
            self._refused_at = sequence
            self._returning = sum(1 for other in self.in_flight if other > sequence)
            if not self._returning:
                self.next_sequence = max(sequence, self._acked_to)
        return frame

    def dropped(self, frame: PendingFrame) -> None:
        """A frame could not be built, so its sequence was never used."""
        del self.in_flight[frame.sequence]
        self._refused_at = frame.sequence
        self._renumber()

    def lost(self) -> None:
        """The connection is gone: whatever is in flight is to be sent again first."""
        if self._returning:
            self._renumber()
        for frame in self.in_flight.values():
            frame.in_doubt = True
        self._resend = deque(self.in_flight.values())

    def forgotten(self, sequence: int, producer_id: bytes) -> list[PendingFrame]:
        """The daemon has forgotten its producer; go on as another one, over another call.

        Returns the frames of which nobody knows whether they are stored, which have failed. The
        daemon has stored nothing behind a frame that it refused like this, so those that came over
        this call alone are sent again under new sequences.
        """
        if sequence not in self.in_flight:
            return []
        unanswered = list(self.in_flight.values())
        self.in_flight.clear()
        self._resend.clear()
        for frame in reversed(unanswered):
            if not frame.in_doubt:
                frame.encoded = b""
                self.waiting.appendleft(frame)
        self.producer_id = producer_id
        self.next_sequence = self._returning = self._refused_at = self._acked_to = 0
        return [frame for frame in unanswered if frame.in_doubt]

    @property
    def is_unused(self) -> bool:
        """Whether no frame was numbered under its producer yet."""
        return self.next_sequence == 0 and not self.in_flight

    def unsettled(self) -> list[PendingFrame]:
        """Every frame that has no outcome yet, in order."""
        return [*self.in_flight.values(), *self.waiting]

    def clear(self) -> None:
        """Forget every frame."""
        self.waiting.clear()
        self.in_flight.clear()
        self._resend.clear()
        self._returning = 0

    def _came_back(self) -> None:
        if self._returning:
            self._returning -= 1
            if not self._returning:
                self._renumber()

    def _renumber(self) -> None:
        """Put the frames behind a refused one in front of the queue, to be numbered anew."""
        behind = [f for sequence, f in self.in_flight.items() if sequence > self._refused_at]
        for frame in reversed(behind):
            del self.in_flight[frame.sequence]
            frame.encoded = b""
            frame.in_doubt = False
            self.waiting.appendleft(frame)
        self.next_sequence = max(self._refused_at, self._acked_to)
        self._returning = 0
