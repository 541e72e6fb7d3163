"""Records of one stream that travel together, and what became of them.

Invariant: a frame is settled once. If its records were routed anew to several streams, it is
settled when all its parts are. It knows only its own sequence, and no connection.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import accumulate
from typing import TYPE_CHECKING

from dss_core.errors import DssError

if TYPE_CHECKING:
    from dss_core.columns import Columns
    from dss_core.rows_layout import Headers


@dataclass(frozen=True, slots=True)
class Ack:
    """The daemon has stored what was sent."""

    stream: str
    """As TOPIC/ORDINAL/PARTITION."""
    offset: int
    """The offset of the record, or of the first of `records`."""
    append_time_us: int
    """When the daemon stored it, microseconds since 1970."""
    durability: str
    """What this ack promises: ``sync``: on disk; ``os``: written, and lost if the machine fails."""
    repeated: bool
    """Whether the daemon had stored it before: this answers a resend after a lost connection."""
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
        "part_starts",
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
        """When its first record was added."""
        self.payloads: list[bytes] = []
        self.keys: list[bytes | None] = []
        self.hashes: list[int | None] = []
        self.subject = subject
        """The subject of every record, unless `subjects` is given."""
        self.subjects: list[str] | None = None
        self.headers: dict[int, Headers] = {}
        """Headers by row; most records have none."""
        self.timestamps_us: dict[int, int] = {}
        """Times by row, where the user chose one."""
        self.columns: Columns | None = None
        """The columns of a frame that was not built record by record."""
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
        """The frames of its records, if these were routed anew to several streams."""
        self.places: Sequence[int] = ()
        """By row, if it has parts: the position in all parts, one after the other."""
        self.part_starts: list[int] = []
        """The position of the first row of each part."""
        self.whole: PendingFrame | None = None
        """The frame that this one is a part of."""
        self.waiters: list[asyncio.Future[None]] = []

    @classmethod
    def of(cls, columns: "Columns", size_bytes: int) -> "PendingFrame":
        """A frame of columns that fit into one."""
        pending = cls(0)
        pending.columns = columns
        pending.size_bytes = size_bytes
        return pending

    def note_subject(self, row: int, subject: str) -> None:
        """The record at the row has a subject that differs from the ones before."""
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
        """Whether somebody will see its failure, or that of the frame that it is a part of."""
        return self.awaited or (self.whole is not None and self.whole.is_awaited)

    def split(
        self, parts: "Mapping[int, Columns]", places: Sequence[int]
    ) -> "dict[int, PendingFrame]":
        """Divide its records into frames, which settle this one once all of them are settled."""
        # The whole frame keeps the counted bytes, and gives them back when it is settled.
        made = {partition: PendingFrame.of(columns, 0) for partition, columns in parts.items()}
        for part in made.values():
            part.whole = self
        self.places = places
        sizes = [columns.records for columns in parts.values()]
        self.part_starts = list(accumulate(sizes[:-1], initial=0))
        # Last: a thread that asks for a position meanwhile finds all of this, or nothing.
        self.parts = tuple(made.values())
        self._let_go()
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
        """Wait until it is settled; returns an ack for each stored frame.

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
            DssError: the record was not stored, or its outcome is unknown.
        """
        self.awaited = True
        await self.wait()
        part, row = self.place_of(row)
        if part.error is not None:
            raise part.error
        assert part.ack is not None
        return replace(part.ack, offset=part.ack.offset + row, records=1)

    def place_of(self, row: int) -> "tuple[PendingFrame, int]":
        """The frame that has the record of the row, and the row in that frame."""
        if not self.parts:
            return self, row
        place = self.places[row]
        number = bisect_right(self.part_starts, place) - 1
        return self.parts[number].place_of(place - self.part_starts[number])

    def _acks(self) -> list[Ack]:
        if self.parts:
            return [ack for part in self.parts for ack in part._acks()]
        assert self.ack is not None
        return [self.ack]

    async def wait(self) -> None:
        """Wait until it is settled, with or without success."""
        if not self.settled:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.waiters.append(waiter)
            await waiter

    def settle(self, ack: Ack | None, error: DssError | None) -> None:
        """Settle it: keep the outcome, wake the waiters, drop the records."""
        assert not self.settled
        self.ack = ack
        self.error = error
        self.encoded = b""
        self._let_go()
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _let_go(self) -> None:
        """Drop the records: nobody asks for them any more."""
        self.columns = None
        self.payloads, self.keys, self.hashes, self.subjects = [], [], [], None
        self.headers, self.timestamps_us = {}, {}
