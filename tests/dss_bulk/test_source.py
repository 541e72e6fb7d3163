"""What is read of ranges: every record once, or an error."""

from pathlib import Path

import pytest

from dss_bulk.source import tables_of
from dss_bulk.tables import RECORDS
from dss_client import Client
from dss_client.job_values import SourceRange
from dss_core.errors import OffsetOutOfRange
from dss_core.filters import TopicFilter
from dss_core.ids import StreamId
from dssd.log.port import Chunk
from dssd.store.memory import MemoryStore
from dssd.store.port import Put
from dssd.store.rows import CeilingRow
from dssd.topics.catalogue import Topic
from support.log_in_process import Shelf, opened_shelf
from support.served_log import client_of


def part(topic: Topic, start: int, end: int) -> SourceRange:
    storage = topic.producing.storage_topic_id
    return SourceRange(f"{topic.name}/0/0", storage, 0, start, end)


async def read(
    client: Client, *ranges: SourceRange, subject: str | None = None, in_place: bool = True
) -> list[int]:
    found: list[int] = []
    async for _, table in tables_of(client, ranges, subject=subject, in_place=in_place):
        assert table.schema.names == RECORDS.names
        found += table["offset"].to_pylist()
    return found


async def test_ranges_come_one_after_the_other_each_up_to_its_end(shelf: Shelf) -> None:
    topic = await shelf.topic("a")
    for _ in range(4):
        await shelf.store(topic, b"0", b"1", b"2")
    async with client_of(shelf) as client:
        assert await read(client, part(topic, 7, 8), part(topic, 1, 5)) == [7, 1, 2, 3, 4]


@pytest.mark.parametrize("in_place", [True, False])
async def test_other_subjects_are_left_out_up_to_the_end_of_the_range(
    shelf: Shelf, in_place: bool
) -> None:
    topic = await shelf.topic("a")
    for number in range(8):
        await shelf.store(topic, b"", subject=f"a/{number % 2}")
    async with client_of(shelf) as client:
        found = await read(client, part(topic, 0, 5), subject="a/1", in_place=in_place)
        assert found == [1, 3]


async def test_what_retention_took_is_an_error(shelf: Shelf) -> None:
    topic = await shelf.topic("a")
    for _ in range(4):
        await shelf.store(topic, b"0")
    async with client_of(shelf) as client:
        await shelf.log.trim(topic.streams()[0], 2)
        assert await read(client, part(topic, 2, 4)) == [2, 3]
        with pytest.raises(OffsetOutOfRange):
            await read(client, part(topic, 1, 4))


@pytest.mark.parametrize("subject", [None, "a/+"])
async def test_what_retention_takes_while_it_is_read_is_an_error(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, subject: str | None
) -> None:
    topic = await shelf.topic("a")
    for _ in range(3):
        await shelf.store(topic, b"0", subject="a/1")
    reading = shelf.log.read

    async def trimmed(
        stream: StreamId, offset: int, *, bytes_max: int, matching: TopicFilter | None = None
    ) -> Chunk:
        await shelf.log.trim(stream, 2)
        return await reading(stream, offset, bytes_max=bytes_max, matching=matching)

    monkeypatch.setattr(shelf.log, "read", trimmed)
    async with client_of(shelf) as client:
        with pytest.raises(OffsetOutOfRange, match="begin at 2"):
            await read(client, part(topic, 0, 3), subject=subject, in_place=False)


async def test_offsets_that_nobody_was_given_are_no_error(tmp_path: Path) -> None:
    store = MemoryStore()
    async with opened_shelf(tmp_path, store) as shelf:
        topic = await shelf.topic("a")
        await shelf.store(topic, b"0")
    await store.commit([Put(CeilingRow(*topic.streams()[0], 64))])
    async with opened_shelf(tmp_path, store) as shelf:
        await shelf.store(topic, b"1")
        async with client_of(shelf) as client:
            assert await read(client, part(topic, 0, 65)) == [0, 64]
