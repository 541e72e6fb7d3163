"""Where records that were found are for one group now: in their stream, a queue, out, or done.

What retention took of a stream may still wait in a queue of the group, or lie dead there; it is
found there too. Invariant: each record comes once: from its stream while that keeps it, else from
the queue that has it.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dss_core.errors import OffsetNotWritten, StreamNotFound, StreamNotRead
from dss_core.filters import TopicFilter
from dss_core.ids import StreamName
from dss_core.progress import Ranges, covers, normalised
from dssctl.items import item_of
from dssctl.output import Item
from dssctl.records.looking import Found, RecordsWanted
from dssctl.records.skipped import skipped_by_hand

if TYPE_CHECKING:
    from dss_client import Client, QueueEntry

SKIPPED = "skipped"
"""The code of what an operator passed over, where the group only says that it is done with it."""

_DONE = ("acked", "done")


@dataclass(frozen=True, slots=True)
class Sought:
    """The conditions of a search in streams, applied to queues."""

    topic: str
    stream: str | None
    wanted: RecordsWanted
    since_us: int | None
    until_us: int | None
    kept_from: Mapping[str, int]
    """The first offset that each stream keeps, of those that were looked at."""

    def takes(self, entry: "QueueEntry") -> bool:
        """Whether the record meets the conditions, and its stream no longer has it."""
        name, wanted = StreamName.parse(entry.stream), self.wanted
        if name.topic != self.topic or self.stream not in (None, entry.stream):
            return False
        if self.kept_from.get(entry.stream, entry.offset + 1) <= entry.offset:
            return False
        in_time = (self.since_us or 0) <= entry.appended_at_us and (
            self.until_us is None or entry.appended_at_us < self.until_us
        )
        if wanted.subject and not TopicFilter.parse(wanted.subject).matches(entry.subject):
            return False
        return in_time and wanted.takes(entry.key, entry.headers, entry.payload)


class Standings:
    """Of the records of one look, for one group."""

    def __init__(self, group: str, skips: Mapping[str, Ranges]) -> None:
        self._group = group
        self._skips = skips

    @classmethod
    async def of(cls, client: "Client", group: str) -> "Standings":
        """With what operators passed over for the group.

        Raises:
            GroupNotFound, GroupAmbiguous: there is none.
        """
        found = (await client.groups.describe(group)).group
        named = f"{found.name}@{found.filter}"
        ranges: dict[str, list[tuple[int, int]]] = {}
        for each in await skipped_by_hand(client, named):
            start, count = each["offset"], each["count"]
            if isinstance(start, int) and isinstance(count, int):
                ranges.setdefault(str(each["stream"]), []).append((start, start + count))
        return cls(named, {stream: normalised(own) for stream, own in ranges.items()})

    async def of_record(self, client: "Client", stream: str, offset: int) -> Item:
        """Where it is, in fields."""
        try:
            answer = await client.groups.why(self._group, stream=stream, offset=offset)
        except (StreamNotRead, StreamNotFound, OffsetNotWritten):
            return {"group": self._group, **_NOWHERE}
        (record,) = answer.records
        told = item_of("GroupStanding", record, group=self._group)
        own = {name: told[name] for name in _FIELDS}
        if own["code"] in _DONE and covers(self._skips.get(stream, ()), offset):
            own["code"] = SKIPPED
            own["sentence"] = "An operator passed over it: dssctl records skipped says who."
        return own


_FIELDS = ("group", "code", "client_id", "attempt", "sentence")
_NOWHERE: Item = {
    "code": "not-read",
    "client_id": None,
    "attempt": None,
    "sentence": "The group does not read its stream.",
}


async def in_queues(
    client: "Client", group: str, sought: Sought, looked_max: int
) -> AsyncGenerator[Found | None, None]:
    """Records that only queues of the group have; None once the bound on looked-at entries is
    met."""
    key, looked = sought.wanted.key, 0
    queues = client.queues
    for entries in (queues.retries, queues.dead_letters):
        async with aclosing(entries(group, key=key, whole=True)) as found:
            async for each in found:
                looked += 1
                if looked > looked_max:
                    yield None
                    return
                if sought.takes(each):
                    yield _record(each)


def may_be_gone(kept_from: Mapping[str, int], ordinals: Sequence[int]) -> bool:
    """Whether retention may have removed records of a topic."""
    return min(ordinals, default=0) > 0 or any(kept_from.values())


def _record(entry: "QueueEntry") -> Found:
    return Found(
        append_time_us=entry.appended_at_us,
        # A queue keeps the producer's time with the record, and does not tell it to people.
        timestamp_us=entry.appended_at_us,
        offset=entry.offset,
        stream=entry.stream,
        subject=entry.subject,
        key=entry.key,
        payload=entry.payload,
        headers=entry.headers,
    )
