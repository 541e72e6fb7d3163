"""What operators are told of a stream whose delivery paused at the cap of acknowledged ranges."""

from dssd.events.kinds import STREAM_STALLED
from dssd.events.model import GROUP_FIELD, Event
from dssd.store.rows import GroupRow


def stalled_event(stream: str, group: GroupRow, client_id: str, offset: int) -> Event:
    """The stream waits for the record at the offset, which the client has."""
    name = f"{group.name}@{group.filter}"
    return Event(
        STREAM_STALLED,
        stream,
        f"Group {name} gets nothing new of it until the record at offset {offset}, which client "
        f"{client_id} has, is acknowledged.",
        {GROUP_FIELD: name, "client_id": client_id, "offset": str(offset)},
    )
