"""Records out of the files of a log that goes on: the same as the daemon sends, or not read."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from dss_bulk.in_place import tables_in_place
from dss_bulk.source import tables_of
from dss_client import Client
from dss_client.job_values import SourceRange
from dss_client.stored_runs import StoredRuns
from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.errors import StreamDamaged, StreamNotFound
from dss_core.producer_ids import NO_PRODUCER
from dssd.log.port import Append, Publication
from dssd.store.memory import MemoryStore
from dssd.topics.catalogue import Topic
from support.log_in_process import Shelf, opened_shelf
from support.segment_bytes import flip
from support.served_log import client_of

PARTITIONS = 2


def part(topic: Topic, partition: int, start: int, end: int) -> SourceRange:
    storage = topic.producing.storage_topic_id
    return SourceRange(f"{topic.name}/0/{partition}", storage, partition, start, end)


def frame(shelf: Shelf, partition: int, numbers: Sequence[int], sequence: int) -> bytes:
    """Records of every kind; 32 and more are a frame in the arrow layout."""
    columns = Columns(
        payloads=[b"%d" % number * (number % 9) for number in numbers],
        keys=[None if number % 3 == 0 else b"k%d" % number for number in numbers],
        subjects=[f"a/{number % 2}" for number in numbers],
        headers=[(("h", b"1"), ("h", b"2")) if number % 5 == 0 else () for number in numbers],
        timestamps_us=list(numbers),
    )
    return build_frame(
        columns, partition=partition, producer_id=shelf.producer_id, sequence=sequence
    )


async def append(shelf: Shelf, topic: Topic, first: int, *, records: int = 40) -> None:
    """A frame of many records and one of few, in each partition."""
    streams = topic.producing.streams()
    await shelf.log.append(
        [
            Append(streams[partition], frame(shelf, partition, range(count), first + at), 1)
            for partition in range(PARTITIONS)
            for at, count in enumerate((records, 3))
        ]
    )


async def adopt(shelf: Shelf, topic: Topic) -> None:
    columns = Columns([b"1", b"2"], None, "a/1", None, 1)
    frames = [
        build_frame(columns, partition=number, producer_id=NO_PRODUCER, sequence=0)
        for number in range(PARTITIONS)
    ]
    number = topic.producing.storage_topic_id
    publish = Publication()
    await shelf.log.adopt(number, lambda: [frames], topic_epoch=1, publish=lambda _: publish)


@pytest.fixture
async def filled(shelf: Shelf) -> Topic:
    """A trimmed head, a sealed segment, an ingested one, an active one."""
    topic = await shelf.topic("a", PARTITIONS)
    await append(shelf, topic, 0)
    await append(shelf, topic, 2)
    await shelf.log.roll(topic.producing.storage_topic_id)
    await append(shelf, topic, 4)
    await adopt(shelf, topic)
    await append(shelf, topic, 6)
    for stream in topic.producing.streams():
        await shelf.log.trim(stream, 7)
    return topic


@pytest.fixture
async def client(shelf: Shelf) -> AsyncIterator[Client]:
    async with client_of(shelf) as connected:
        yield connected


async def whole(
    client: Client,
    wanted: SourceRange,
    *,
    in_place: bool,
    subject: str | None = None,
    encoded: bool = False,
) -> pa.Table:
    reading = tables_of(client, [wanted], subject=subject, in_place=in_place, encoded=encoded)
    return pa.concat_tables([table async for _, table in reading])


async def covered(client: Client, wanted: SourceRange) -> int:
    """Up to where a range can be read in place."""
    ends = [behind async for _, behind in tables_in_place(client, wanted)]
    return max(ends, default=wanted.start)


def segments(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.seg"))


@pytest.mark.parametrize("subject", [None, "a/1"])
@pytest.mark.parametrize(("start", "end"), [(7, 174), (9, 150), (60, 61), (86, 133)])
async def test_both_ways_give_the_same(
    shelf: Shelf, filled: Topic, client: Client, start: int, end: int, subject: str | None
) -> None:
    for partition in range(PARTITIONS):
        wanted = part(filled, partition, start, end)
        assert await covered(client, wanted) == end
        read = await whole(client, wanted, in_place=True, subject=subject)
        sent = await whole(client, wanted, in_place=False, subject=subject)
        assert read.equals(sent)
        for way in (True, False):
            coded = await whole(client, wanted, in_place=way, subject=subject, encoded=True)
            at, name = coded.schema.get_field_index("subject"), "subject"
            assert coded.set_column(at, name, coded[name].cast(pa.utf8())).equals(read)
        assert subject is not None or read.num_rows == end - start
    files = [each async for each in client.stored_runs(part(filled, 0, 7, 174))]
    assert len(files) == 4, "two sealed, one ingested, one active"


async def test_a_file_that_cannot_be_opened_is_sent(
    filled: Topic, client: Client, tmp_path: Path
) -> None:
    wanted = part(filled, 1, 9, 170)
    before = await whole(client, wanted, in_place=False)
    [_, second, *_] = segments(tmp_path)
    second.rename(tmp_path / "elsewhere")
    reached = await covered(client, wanted)
    assert 9 < reached < 170
    (tmp_path / "elsewhere").rename(second)
    second.chmod(0o600)
    assert (await whole(client, wanted, in_place=True)).equals(before)


async def test_bytes_that_are_not_as_told_are_not_read(
    shelf: Shelf, filled: Topic, client: Client, tmp_path: Path
) -> None:
    wanted = part(filled, 0, 9, 170)
    before = await whole(client, wanted, in_place=True)
    first = segments(tmp_path)[0]
    copy = tmp_path / "copy"
    copy.write_bytes(bytes(first.stat().st_size))
    first.rename(tmp_path / "real")
    # Another file under the name, as on another machine; the daemon has its own open.
    copy.rename(first)
    assert await covered(client, wanted) < 170
    (tmp_path / "real").rename(first)
    assert (await whole(client, wanted, in_place=True)).equals(before)


async def test_damage_is_told_by_the_daemon_after_all_that_is_whole(tmp_path: Path) -> None:
    store = MemoryStore()
    async with opened_shelf(tmp_path, store) as shelf:
        topic = await shelf.topic("a")
        for number in range(3):
            await shelf.store(topic, b"%d" % number * 100)
            await shelf.log.roll(topic.producing.storage_topic_id)
    second = segments(tmp_path)[1]
    flip(second, second.stat().st_size - 9)
    found: list[int] = []
    async with opened_shelf(tmp_path, store) as shelf, client_of(shelf) as client:
        reading = tables_of(client, [part(topic, 0, 0, 3)])
        found += (await anext(reading))[1]["offset"].to_pylist()
        found += (await anext(reading))[1]["offset"].to_pylist()
        with pytest.raises(StreamDamaged) as told:
            await anext(reading)
    assert found == [0, 2]
    assert told.value.fields["offset"] == "1"


async def test_what_was_told_stays_true_while_the_log_goes_on(
    shelf: Shelf, filled: Topic, client: Client
) -> None:
    wanted = part(filled, 0, 86, 170)
    before = await whole(client, wanted, in_place=False)
    told: list[StoredRuns] = [each async for each in client.stored_runs(wanted)]
    await append(shelf, filled, 8)
    await shelf.log.roll(filled.producing.storage_topic_id)
    await adopt(shelf, filled)

    class Told:
        """A daemon that answered before."""

        async def stored_runs(self, _: SourceRange, group: str) -> AsyncIterator[StoredRuns]:
            assert not group
            for each in told:
                yield each

    tables = [table async for table, _ in tables_in_place(Told(), wanted)]  # type: ignore[arg-type]
    assert pa.concat_tables(tables).equals(before)


async def test_a_topic_that_came_in_the_place_of_another_is_not_read_for_it(
    shelf: Shelf, filled: Topic, client: Client
) -> None:
    wanted = part(filled, 0, 9, 20)
    await shelf.catalogue.remove("a")
    await append(shelf, await shelf.topic("a", PARTITIONS), 0)
    with pytest.raises(StreamNotFound):
        await whole(client, wanted, in_place=True)
