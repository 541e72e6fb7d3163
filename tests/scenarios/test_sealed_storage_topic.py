"""A batch for a storage topic that takes no more records."""

import asyncio
from dataclasses import replace
from pathlib import Path

import dss_client
from dssd.data_directory import STORE_NAME
from dssd.store.port import Put
from dssd.store.rows import StorageTopicRow, TopicRow
from dssd.store.sqlite import SqliteStore
from support.daemon_process import running, short_directory
from support.raw_stubs import condition, connected, produced
from support.raw_topic import Found, RawTopic

PATIENCE_S = 60.0


async def seal(store_path: Path, ends: str) -> None:
    """Write down that a topic's only storage topic ended, while no daemon runs."""
    store = await SqliteStore.open(store_path)
    [found] = await store.scan(StorageTopicRow)
    await store.commit([Put(replace(found.row, ends=ends))])
    await store.close()


async def test_a_batch_for_a_sealed_storage_topic_is_refused_and_what_it_holds_stays() -> None:
    with short_directory() as directory:
        async with (
            running("--data-dir", str(directory)) as daemon,
            connected(daemon.endpoint) as stubs,
        ):
            topic = await RawTopic.created(stubs, "orders")
            first = topic.frame(b"0")
            await topic.send(stubs, first)
            assert await daemon.stop() == 0
        await seal(directory / STORE_NAME, "1")
        async with (
            running("--data-dir", str(directory)) as daemon,
            connected(daemon.endpoint) as stubs,
        ):
            answers = await produced(stubs, topic.name, topic.topic_epoch, topic.frame(b"1"))
            (refusal,) = map(condition, (item.error for item in answers.refusals))
            assert (refusal.code, refusal.fields["topic"]) == ("DSS2010", "orders")
            assert refusal.fields["ordinal"] == "0"
            assert refusal.hint_text
            # What was stored before gets its first answer all the same.
            (again,) = await topic.send(stubs, first)
            assert (again.base_offset, again.repeated) == (0, True)
            assert await topic.read(stubs) == Found({0: b"0"})
            assert "Traceback" not in daemon.said


async def switch(store_path: Path, ends: str) -> int:
    """Write down that a topic produces to another storage topic; returns its epoch from then on."""
    store = await SqliteStore.open(store_path)
    [topic] = await store.scan(TopicRow)
    [old] = await store.scan(StorageTopicRow)
    number = await store.next_id()
    new = replace(
        old.row, ordinal=1, storage_topic_id=number, partitions=2, starts="0,0", ends=None
    )
    moved = replace(topic.row, produce_ordinal=1, topic_epoch=number)
    await store.commit([Put(replace(old.row, ends=ends)), Put(new), Put(moved)])
    await store.close()
    return number


async def test_a_repeated_frame_gets_its_first_answer_across_a_switch() -> None:
    with short_directory() as directory:
        async with (
            running("--data-dir", str(directory)) as daemon,
            connected(daemon.endpoint) as stubs,
        ):
            topic = await RawTopic.created(stubs, "orders")
            first, second, third = (topic.frame(b"%d" % number) for number in range(3))
            await topic.send(stubs, first, second)
            await daemon.kill()
        new_epoch = await switch(directory / STORE_NAME, "2")
        async with (
            running("--data-dir", str(directory)) as daemon,
            connected(daemon.endpoint) as stubs,
        ):
            for _ in range(2):
                # What was sent before the switch and not answered comes again as it was sent.
                again = await produced(stubs, "orders", topic.topic_epoch, first, second, third)
                places = [(ack.ordinal, ack.base_offset, ack.repeated) for ack in again.acks]
                assert places == [(0, 0, True), (0, 1, True)]
                (refusal,) = map(condition, (item.error for item in again.refusals))
                assert (refusal.code, refusal.fields["current"]) == ("DSS2009", str(new_epoch))
                # Routed anew, with sequences of the new stream; the answers do not mix.
                other = RawTopic("orders", new_epoch)
                other.producer_id = topic.producer_id
                moved = await produced(stubs, "orders", new_epoch, other.frame(b"2"))
                assert [(ack.ordinal, ack.base_offset) for ack in moved.acks] == [(1, 0)]


async def test_a_group_finishes_a_sealed_storage_topic_whose_last_file_is_missing() -> None:
    with short_directory() as directory:
        async with (
            running("--data-dir", str(directory)) as daemon,
            dss_client.connect(endpoint=daemon.endpoint) as client,
        ):
            await client.topics.create("orders", partitions=1)
            await client.groups.create("$share/g/orders/#", start="earliest")
            async with client.producer("orders") as producer:
                await producer.send(b"gone")
            # Killed, so that no watermark in its row tells that the file held anything.
            await daemon.kill()
        await seal(directory / STORE_NAME, "1")
        files = list(directory.rglob("*.seg"))
        assert len(files) == 1
        for path in (*files, *directory.rglob("*.idx")):
            path.unlink()
        second = f"unix:{directory / 'second.sock'}"
        async with (
            running("--data-dir", str(directory), "--listen", second) as daemon,
            dss_client.connect(endpoint=second) as client,
            client.subscribe("$share/g/orders/#"),
            asyncio.timeout(PATIENCE_S),
        ):
            [grant] = await client.grants.list("g")
            while grant.state != "finished":
                [grant] = await client.grants.list("g")
            assert (grant.end, grant.progress.floor) == (1, 1)
