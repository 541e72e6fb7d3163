"""Events about a session's streams: reads that fail, damage, streams that stall.

Invariant: damaged records are passed over only after an event that says so is durable. This module
must not know why a read fails; it tells what it is given.
"""

from dss_core.errors import DiskFailed, DiskFull, LogUnreadable, Stopping
from dss_core.progress import Ranges, total
from dss_core.sentences import as_sentence
from dssd.events.kinds import (
    RECORDS_PASSED,
    STREAM_DAMAGED,
    STREAM_READABLE,
    STREAM_STALLED,
    STREAM_UNREADABLE,
)
from dssd.events.model import GROUP_FIELD, Event
from dssd.events.teller import Teller
from dssd.leaders.declarations import STALL
from dssd.queues.failures import failure_events
from dssd.queues.lane import Failed
from dssd.store.rows import GroupRow


class DeliveryTrouble:
    """The trouble of one session; lasting trouble is told once."""

    def __init__(self, events: Teller, client_id: str) -> None:
        self._events = events
        self._client_id = client_id
        self._unreadable: set[str] = set()

    def unreadable(self, stream: str, group: GroupRow, error: LogUnreadable) -> None:
        """A read of the stream failed; it is tried again."""
        self._unreadable.add(stream)
        reason = error.fields["reason"]
        said = (
            as_sentence(f"A read for group {group.full_name} failed: {reason}")
            + " Nothing is skipped."
        )
        self._events.note(Event(STREAM_UNREADABLE, stream, said, _fields(group, error.fields)))

    def readable(self, stream: str, group: GroupRow) -> None:
        """A read of the stream succeeded."""
        if stream in self._unreadable:
            self._unreadable.discard(stream)
            said = f"Reads for group {group.full_name} succeed again."
            self._events.note(Event(STREAM_READABLE, stream, said, _fields(group)))

    async def damaged(self, stream: str, group: GroupRow, damaged: Ranges) -> bool:
        """Tell of confirmed damage; returns whether that is durable, and it may be passed over."""
        if group.on_damage == STALL:
            said = f"Group {group.full_name} stalls before {_records(damaged)}."
            self._events.note(Event(STREAM_DAMAGED, stream, said, _fields(group)))
            return True
        try:
            for start, end in damaged:
                await self._events.tell(_passed(stream, group, start, end))
        except (DiskFull, DiskFailed, Stopping):
            return False
        return True

    def failed(self, stream: str, group: GroupRow, failed: Failed) -> None:
        """Records of the stream failed, and are in the group's queues."""
        for event in failure_events(group.full_name, stream, failed):
            self._events.note(event)

    def stalled(self, stream: str, group: GroupRow, offset: int) -> None:
        """The stream waits for the record at the offset, which the client has."""
        said = (
            f"Group {group.full_name} gets nothing new of it until the record at offset {offset}, "
            f"which client {self._client_id} has, is acknowledged."
        )
        fields = {"client_id": self._client_id, "offset": str(offset)}
        self._events.note(Event(STREAM_STALLED, stream, said, _fields(group, fields)))


def _passed(stream: str, group: GroupRow, start: int, end: int) -> Event:
    said = f"Group {group.full_name} goes on behind {_records(((start, end),))}."
    fields = {"start": str(start), "end": str(end)}
    return Event(RECORDS_PASSED, stream, said, _fields(group, fields))


def _records(ranges: Ranges) -> str:
    count, first, last = total(ranges), ranges[0][0], ranges[-1][1] - 1
    if count == 1:
        return f"the damaged record at offset {first}"
    return f"{count} damaged records, offsets {first} to {last}"


def _fields(group: GroupRow, others: dict[str, str] | None = None) -> dict[str, str]:
    return {GROUP_FIELD: group.full_name, **(others or {})}
