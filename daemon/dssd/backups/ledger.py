"""The ledger of backups: which were handed over, which are confirmed, and when they were taken.

Invariant: a backup counts once its writer confirms that it is durable. After a restart the daemon
knows the newest one as long as its event is kept.
"""

import asyncio
import os
from collections import OrderedDict
from dataclasses import dataclass, field

from dss_core.counted import bytes_text
from dss_core.errors import IllegalArgument
from dssd.backups.snapshots import Snapshot
from dssd.events.events import Events
from dssd.events.kinds import BACKUP_DONE
from dssd.events.model import Event, Note
from dssd.events.selection import EventSelection

BACKUP_ID_BYTES = 16
"""Random, so that no caller can confirm the backup of another."""

BACKUPS_UNCONFIRMED_MAX = 16
"""Backups handed over and not yet confirmed: one is made at a time, and a confirmation takes
seconds."""

_TAKEN_AT = "taken_at_ms"


@dataclass(frozen=True, slots=True)
class WrittenBackup:
    """What the writer of a backup reports."""

    destination: str
    bytes: int
    new_bytes: int


@dataclass(frozen=True, slots=True)
class _HandedOver:
    taken_at_ms: int
    confirmed: asyncio.Event = field(default_factory=asyncio.Event)


class BackupLedger:
    """Of one daemon."""

    def __init__(self, note: Note, last_at_ms: int) -> None:
        self._note = note
        self.last_at_ms = last_at_ms
        """When the last one was taken, by the wall clock; 0: none is known."""
        self._handed_over: OrderedDict[bytes, _HandedOver] = OrderedDict()

    @classmethod
    async def open(cls, events: Events) -> "BackupLedger":
        """Rebuild the ledger from the events."""
        wanted = EventSelection(codes=frozenset({BACKUP_DONE.code}))
        last = await events.last_of(wanted, events.last_number, 1)
        return cls(events.note, int(last[-1].fields.get(_TAKEN_AT, "0")) if last else 0)

    def hand_over(self, snapshot: Snapshot) -> bytes:
        """Note that a backup goes to a writer; returns the id with which the writer confirms it."""
        id_ = os.urandom(BACKUP_ID_BYTES)
        self._handed_over[id_] = _HandedOver(snapshot.taken_at_us // 1_000)
        if len(self._handed_over) > BACKUPS_UNCONFIRMED_MAX:
            self._handed_over.popitem(last=False)
        return id_

    async def confirmed(self, id_: bytes) -> None:
        """Return once it is confirmed."""
        await self._handed_over[id_].confirmed.wait()

    def confirm(self, id_: bytes, written: WrittenBackup) -> None:
        """Note that the backup is complete and durable.

        Raises:
            IllegalArgument: no backup of that id was handed over.
        """
        handed_over = self._handed_over.pop(id_, None)
        if handed_over is None:
            raise IllegalArgument(argument="id", rule="it is that of a backup of this daemon")
        handed_over.confirmed.set()
        taken_at_ms = handed_over.taken_at_ms
        self.last_at_ms = max(self.last_at_ms, taken_at_ms)
        sizes = f"{bytes_text(written.bytes)}, {bytes_text(written.new_bytes)} of them new"
        fields = {
            _TAKEN_AT: str(taken_at_ms),
            "bytes": str(written.bytes),
            "new_bytes": str(written.new_bytes),
        }
        sentence = f"A backup was written: {sizes}."
        self._note(Event(BACKUP_DONE, written.destination, sentence, fields))
