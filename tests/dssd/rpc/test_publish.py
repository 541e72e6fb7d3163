"""Plain records, built into frames by the daemon."""

from collections.abc import Sequence
from typing import Any

import pytest

from dss_api.v1 import types_pb2
from dss_core.decode import decode
from dss_core.errors import DiskFull, PublishedInPart
from dss_core.routing import key_hash, partition_of
from dssd.clock import Clock
from dssd.log.port import Append, Appended
from dssd.rpc.backpressure import AppendBudget
from dssd.rpc.frame_checks import Gates
from dssd.rpc.publish import RecordPublisher
from dssd.topics.catalogue import Topic
from support.log_in_process import Shelf

KEYS = [b"%d" % number for number in range(12)]


class SwitchingLog:
    """The topic goes on in other streams before the log takes what was routed by the last ones."""

    def __init__(self, shelf: Shelf, *partitions: int) -> None:
        self.refused = False
        """The first stream that takes records has no room."""
        self._shelf = shelf
        self._partitions = list(partitions)

    async def append(self, appends: Sequence[Append]) -> list[Appended | BaseException]:
        if self._partitions:
            topic = self._shelf.catalogue.get("a")
            ordinal = topic.produce_ordinal + 1
            partitions = self._partitions.pop(0)
            await self._shelf.catalogue.add_storage_topic(topic.topic_id, ordinal, partitions)
            await self._shelf.catalogue.switch(topic.topic_id, ordinal)
            return await self._shelf.log.append(appends)
        if not self.refused:
            return await self._shelf.log.append(appends)
        return [DiskFull(), *await self._shelf.log.append(appends[1:])]


def publisher(log: Any) -> RecordPublisher:  # noqa: ANN401 - it appends
    return RecordPublisher(log, Clock())


BUDGET = AppendBudget(1 << 30).of("")


def records(payload: bytes) -> list[types_pb2.Record]:
    return [types_pb2.Record(payload=payload, key=key) for key in KEYS for _ in range(2)]


async def stored(shelf: Shelf, topic: Topic) -> dict[str, Sequence[bytes | None]]:
    """By stream of all storage topics: the keys of its records, in order."""
    found: dict[str, Sequence[bytes | None]] = {}
    for part in topic.storage_topics:
        for stream in part.streams():
            chunk = await shelf.log.read(stream, 0, bytes_max=1 << 20)
            name = f"{topic.name}/{part.ordinal}/{stream.partition}"
            found[name] = decode(chunk.frames).keys if chunk.frames else []
    return found


async def test_records_are_routed_anew_where_their_topic_goes_on_in_other_streams(
    shelf: Shelf,
) -> None:
    await shelf.topic("a", 4)
    log = SwitchingLog(shelf, 6, 3)
    sent = records(b"x")
    told = await publisher(log).publish(Gates(shelf.catalogue), BUDGET, "a", sent)
    topic = shelf.catalogue.get("a")
    kept = await stored(shelf, topic)
    assert {name for name, keys in kept.items() if keys} <= {"a/2/0", "a/2/1", "a/2/2"}
    assert sum(map(len, kept.values())) == len(sent)
    for record, place in zip(sent, told, strict=True):
        partition = partition_of(topic.router, key_hash(record.key), 3, topic.producing.factor)
        assert place.stream == f"a/2/{partition}"
        assert kept[place.stream][place.offset] == record.key
    # Records of a key lie in the order of the request.
    assert all(one.offset < two.offset for one, two in zip(told[::2], told[1::2], strict=True))


async def test_a_stream_without_room_is_told_beside_what_was_routed_anew(shelf: Shelf) -> None:
    await shelf.topic("a", 4)
    log = SwitchingLog(shelf, 3)
    log.refused = True
    with pytest.raises(PublishedInPart) as told:
        await publisher(log).publish(Gates(shelf.catalogue), BUDGET, "a", records(b"x"))
    assert (told.value.fields["stored"], told.value.fields["streams"]) == ("2", "3")
