"""A producer whose topic goes on in other streams: nothing is lost, doubled or out of order."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import chain
from pathlib import Path

import pytest

import dss_client
from dss_client import Ack, Delivery, Producer, sync
from dss_client._pending_frame import PendingFrame
from dss_client._routes import Routes
from dss_client.testing import MemoryDaemon, until
from dss_core import frame as frames
from dss_core.decode import decode
from dss_core.errors import (
    DiskFull,
    IllegalArgument,
    OutcomeUnknown,
    ProducerForgotten,
    SequenceTooOld,
    StorageTopicSealed,
    TopicNotFound,
)
from dss_core.routing import Router, key_hash, partition_of
from support.loop_yields import turns_of_others

KEYS = [b"%d" % number for number in range(24)]


def generations(daemon: MemoryDaemon) -> list[dict[bytes, list[bytes]]]:
    """By storage topic, the oldest first: what each key has, in order."""
    found = []
    for streams in (*daemon.sealed, daemon.streams):
        own: dict[bytes, list[bytes]] = defaultdict(list)
        for partition, stream in enumerate(streams):
            for _, frame in stream.frames:
                batch = decode(frame)
                for key, payload in zip(batch.keys, batch.payloads, strict=True):
                    assert key is not None
                    assert partition == partition_of(Router.BLOCK, key_hash(key), len(streams), 1)
                    own[key].append(bytes(payload))
        found.append(own)
    return found


def by_key(daemon: MemoryDaemon) -> dict[bytes, list[bytes]]:
    """What each key has over all storage topics, in their order."""
    joined: dict[bytes, list[bytes]] = defaultdict(list)
    for own in generations(daemon):
        for key, payloads in own.items():
            joined[key] += payloads
    return joined


def producer_ids(daemon: MemoryDaemon) -> list[set[bytes]]:
    """By storage topic: who stored something."""
    return [
        {frames.read_header(frame).producer_id for stream in streams for _, frame in stream.frames}
        for streams in (*daemon.sealed, daemon.streams)
    ]


@asynccontextmanager
async def producing(daemon: MemoryDaemon) -> AsyncIterator[Producer]:
    async with dss_client.connect(endpoint=daemon.endpoint) as client, client.producer("t") as made:
        yield made


def partition(key: bytes) -> int:
    return partition_of(Router.BLOCK, key_hash(key), 4, 1)


def send_to_all(producer: Producer, payload: bytes) -> list[Delivery]:
    """One record a key, closed into frames of their own."""
    sent = [producer.send_nowait(payload, key=key) for key in KEYS]
    for partition in range(len(producer.call.open_frames)):
        producer.call.close(partition)
    return sent


@pytest.fixture
async def four(socket: Path) -> AsyncIterator[MemoryDaemon]:
    """A daemon in memory with four partitions."""
    async with MemoryDaemon(socket, partitions=4) as daemon:
        yield daemon


async def test_frames_that_were_stored_over_a_lost_connection_are_answered_and_not_sent_elsewhere(
    four: MemoryDaemon,
) -> None:
    async with producing(four) as producer:
        four.mute_acks = True
        sent = [send_to_all(producer, b"%d" % number) for number in range(5)]
        await until(lambda: four.stored() == 5 * len(KEYS))
        waiting = [send_to_all(producer, b"%d" % number) for number in range(5, 8)]
        await four.cut()
        four.switch(6)
        four.mute_acks = False
        await four.start()
        later = [send_to_all(producer, b"%d" % number) for number in range(8, 10)]
        acks = [await each for each in chain(*sent)]
        assert all(ack.repeated and ack.stream.startswith("t/0/") for ack in acks)
        acks = [await each for each in chain(*waiting, *later)]
        assert all(ack.stream.startswith("t/1/") for ack in acks)
    old, new = generations(four)
    assert old == {key: [b"%d" % number for number in range(5)] for key in KEYS}
    assert new == {key: [b"%d" % number for number in range(5, 10)] for key in KEYS}
    ids = producer_ids(four)
    assert not ids[0] & ids[1]


@pytest.mark.parametrize("partitions", [1, 6, 12])
async def test_what_is_refused_in_flight_goes_first_and_what_comes_meanwhile_behind_it(
    four: MemoryDaemon, partitions: int
) -> None:
    async with producing(four) as producer:
        await producer.send(b"0", key=KEYS[0])
        four.switch(partitions)
        sent = [send_to_all(producer, b"%d" % number) for number in range(1, 9)]
        await until(lambda: len(four.requests) > 2)
        sent += [send_to_all(producer, b"%d" % number) for number in range(9, 11)]
        for each in chain(*sent):
            ack = await each
            assert ack.stream.startswith("t/1/")
            assert each.offset == ack.offset
    assert generations(four)[1] == {key: [b"%d" % at for at in range(1, 11)] for key in KEYS}


async def test_a_switch_during_a_switch_is_followed_too(four: MemoryDaemon) -> None:
    async with producing(four) as producer:
        for turn, partitions in enumerate((6, 12, 2, 2, 7)):
            send_to_all(producer, b"%d" % (2 * turn))
            four.switch(partitions)
            send_to_all(producer, b"%d" % (2 * turn + 1))
            if turn == 3:
                four.switch(8)
        await producer.flush()
    assert by_key(four) == {key: [b"%d" % at for at in range(10)] for key in KEYS}


async def test_a_switch_is_followed_once_the_daemon_is_back(four: MemoryDaemon) -> None:
    async with producing(four) as producer:
        send_to_all(producer, b"0")
        await producer.flush()
        await four.cut()
        send_to_all(producer, b"1")
        four.switch(6)
        await asyncio.sleep(0)
        await four.start()
        await producer.flush()
    assert by_key(four) == {key: [b"0", b"1"] for key in KEYS}


async def test_columns_go_on_through_a_switch(four: MemoryDaemon) -> None:
    async with producing(four) as producer:
        first = await producer.send_columns([b"0"] * len(KEYS), KEYS)
        four.switch(6)
        columns = [
            asyncio.create_task(producer.send_columns([b"%d" % n] * 24, KEYS)) for n in (1, 2)
        ]
        acks = [ack for each in columns for ack in await each]
    assert sum(ack.records for ack in (*first, *acks)) == 3 * len(KEYS)
    assert {ack.stream[:4] for ack in acks} == {"t/1/"}
    assert by_key(four) == {key: [b"0", b"1", b"2"] for key in KEYS}


@pytest.mark.parametrize("count", [20, 400])
async def test_each_record_of_a_frame_that_was_split_knows_where_it_is(
    four: MemoryDaemon, count: int
) -> None:
    async with producing(four) as producer:
        await producer.send(b"first", key=KEYS[0])
        four.mute_acks = True
        producer.send_nowait(b"in flight", key=KEYS[0])
        await until(lambda: four.stored() == 2)
        await four.cut()
        # Of one partition before, and of several behind two switches.
        own = [key for key in KEYS if partition(key) == partition(KEYS[0])]
        sent = [
            producer.send_nowait(b"%d" % number, key=own[number % len(own)])
            for number in range(count)
        ]
        four.switch(6)
        four.switch(7)
        four.mute_acks = False
        await four.start()
        acks = [await each for each in sent]
    assert len({ack.stream for ack in acks}) > 1
    found = {
        (f"t/2/{number}", base + row): bytes(payload)
        for number, stream in enumerate(four.streams)
        for base, frame in stream.frames
        for row, payload in enumerate(decode(frame).payloads)
    }
    assert [found[ack.stream, ack.offset] for ack in acks] == [b"%d" % n for n in range(count)]
    assert [each.offset for each in sent] == [ack.offset for ack in acks]


async def test_a_frame_that_cannot_be_built_is_routed_anew_whole_and_fails_by_itself(
    four: MemoryDaemon,
) -> None:
    async with producing(four) as producer:
        frame = PendingFrame(1, "t")
        for key in KEYS * 2:
            frame.note_rare(len(frame.payloads), None, 1 << 70)
            frame.payloads.append(b"")
            frame.keys.append(key)
            frame.hashes.append(key_hash(key))
        assert list(producer.call.routes.rerouted(frame)) == [(0, frame)]
        producer.call.add(producer.call.routes, 0, frame)
        right = producer.send_nowait(b"right", key=KEYS[1])
        with pytest.raises(IllegalArgument):
            await frame.outcomes()
        await right


async def test_records_gathered_before_a_switch_keep_their_place(four: MemoryDaemon) -> None:
    async with producing(four) as producer:
        await producer.send(b"0", key=KEYS[0])
        four.mute_acks = True
        producer.send_nowait(b"1", key=KEYS[0])
        await until(lambda: four.stored() == 2)
        # Behind a frame in flight these gather in an open frame.
        gathered = [producer.send_nowait(b"%d" % number, key=KEYS[0]) for number in (2, 3)]
        await four.cut()
        four.switch(6)
        four.mute_acks = False
        await four.start()
        assert {(await each).stream[:4] for each in gathered} == {"t/1/"}
    assert by_key(four) == {KEYS[0]: [b"0", b"1", b"2", b"3"]}


@pytest.mark.parametrize("condition", [ProducerForgotten, SequenceTooOld])
async def test_only_what_nobody_can_tell_of_fails(
    four: MemoryDaemon, condition: type[ProducerForgotten | SequenceTooOld]
) -> None:
    # In this order they are sent again.
    key, other = (next(each for each in KEYS if partition(each) == at) for at in (0, 1))
    async with producing(four) as producer:
        four.mute_acks = True
        doubtful = producer.send_nowait(b"doubtful", key=key)
        await until(lambda: four.stored() == 1)
        rest = []
        for number in range(3):
            rest.append(producer.send_nowait(b"%d" % number, key=other))
            producer.call.close(1)
        await until(lambda: four.stored() == 4)
        behind = producer.send_nowait(b"behind", key=key)
        await four.cut()
        four.switch(6)
        four.mute_acks = False
        four.refuse = [condition(given=0, stream="t/0/0")]
        await four.start()
        with pytest.raises(condition):
            await doubtful
        assert {(await each).stream[:4] for each in rest} == {"t/0/"}
        assert (await behind).stream[:4] == "t/1/"
    assert by_key(four) == {key: [b"doubtful", b"behind"], other: [b"0", b"1", b"2"]}


async def test_a_frame_that_is_wrong_itself_fails_alone_during_a_switch(four: MemoryDaemon) -> None:
    async with producing(four) as producer:
        await producer.send(b"0", key=b"k")
        four.switch(6)
        four.refuse = [DiskFull()]
        sent = []
        for number in range(1, 5):
            sent.append(producer.send_nowait(b"%d" % number, key=b"k"))
            for partition in range(len(producer.call.open_frames)):
                producer.call.close(partition)
        with pytest.raises(DiskFull):
            await sent[0]
        assert [(await each).offset for each in sent[1:]] == [0, 1, 2]
    assert by_key(four) == {b"k": [b"0", b"2", b"3", b"4"]}


async def test_leaving_a_producer_during_a_switch_stores_what_it_was_given(
    four: MemoryDaemon,
) -> None:
    async with producing(four) as producer:
        await producer.send(b"0", key=KEYS[0])
        four.switch(6)
        for number in range(1, 4):
            send_to_all(producer, b"%d" % number)
    assert generations(four)[1] == {key: [b"1", b"2", b"3"] for key in KEYS}


async def test_leaving_by_an_exception_during_a_switch_fails_everything(four: MemoryDaemon) -> None:
    sent: list[Delivery] = []

    async def leave() -> None:
        async with producing(four) as producer:
            four.switch(6)
            sent.extend(send_to_all(producer, b"0"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await leave()
    for each in sent:
        with pytest.raises(OutcomeUnknown):
            await each


async def test_a_topic_that_is_removed_during_a_switch_refuses_records(four: MemoryDaemon) -> None:
    async with producing(four) as producer:
        await producer.send(b"0", key=b"k")
        four.refuse = [StorageTopicSealed(topic="t", ordinal=0)]
        four.reshape = {"gone": True, "topic_epoch": 9}
        with pytest.raises(TopicNotFound):
            await producer.send(b"1", key=b"k")
        four.reshape = {"topic_id": 2, "topic_epoch": 9}
        assert await producer.send(b"2", key=b"k")
    assert by_key(four) == {b"k": [b"0", b"2"]}


async def test_a_refusal_of_a_topic_that_did_not_move_costs_nothing(four: MemoryDaemon) -> None:
    async with producing(four) as producer:
        await producer.send(b"0", key=b"k")
        four.refuse = [StorageTopicSealed(topic="t", ordinal=0)]
        await producer.send(b"1", key=b"k")
    assert by_key(four) == {b"k": [b"0", b"1"]}


async def test_others_have_their_turn_while_very_many_records_are_routed_anew(
    four: MemoryDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns: list[int] = []
    flushes: list[asyncio.Task[None]] = []
    async with producing(four) as producer:
        await producer.send(b"first", key=b"k")
        four.mute_acks = True
        columns = asyncio.create_task(producer.send_columns([b"x" * 1_000] * 5_000))
        await until(lambda: len(producer.call._unsettled()) > 30)
        route_anew = producer.call._route_anew

        async def counted(routes: Routes) -> None:
            routing = asyncio.create_task(turns_of_others(route_anew(routes)))
            await asyncio.sleep(0)
            # Handed over meanwhile, by what holds until all is routed.
            producer.send_nowait(b"meanwhile", key=b"k")
            flushes.append(asyncio.create_task(producer.flush()))
            turns.append(await routing)

        monkeypatch.setattr(producer.call, "_route_anew", counted)
        four.switch(6)
        four.mute_acks = False
        await four.cut()
        await four.start()
        await until(lambda: flushes)
        await flushes[0]
        assert four.stored() == 5_001
        assert sum(ack.records for ack in await columns) == 5_000
    assert turns > [30]


async def test_leaving_while_records_are_routed_anew_fails_all_of_them(four: MemoryDaemon) -> None:
    sending: list[asyncio.Task[list[Ack]]] = []

    async def leave() -> None:
        async with producing(four) as producer:
            await producer.send(b"first", key=b"k")
            four.mute_acks = True
            columns = producer.send_columns([b"x" * 1_000] * 5_000)
            sending.append(asyncio.create_task(columns))
            await until(lambda: len(producer.call._unsettled()) > 30)
            four.switch(6)
            four.mute_acks = False
            await four.cut()
            await four.start()
            await until(lambda: producer.call._later_queues)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await leave()
    with pytest.raises(OutcomeUnknown):
        await sending[0]


async def test_a_producer_in_threads_goes_on_through_switches(four: MemoryDaemon) -> None:
    loop = asyncio.get_running_loop()

    def work() -> None:
        with sync.connect(endpoint=four.endpoint) as client, client.producer("t") as producer:
            for number in range(60):
                if number % 20 == 10:
                    loop.call_soon_threadsafe(four.switch, 5 + number // 10)
                for key in KEYS[:4]:
                    producer.enqueue(b"%d" % number, key=key)
                if number % 7 == 0:
                    producer.send_columns([b"c%d" % number] * 4, KEYS[:4])

    await asyncio.to_thread(work)
    expected = [b"%d" % number for number in range(60)]
    for number in range(56, -1, -7):
        expected.insert(number + 1, b"c%d" % number)
    assert by_key(four) == dict.fromkeys(KEYS[:4], expected)
    assert len(four.sealed) == 3
