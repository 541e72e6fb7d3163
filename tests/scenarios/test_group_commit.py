"""Group commit of a daemon process, as strace sees it: few syncs, and none of them too late."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager

import pytest

import dss_client
from dss_api.v1 import log_pb2
from dss_sim import strace
from support.daemon_process import DaemonProcess, running, short_directory
from support.raw_stubs import Stubs, connected
from support.raw_topic import RawTopic

pytestmark = pytest.mark.needs_strace

SENDS = 1_000
PARTITIONS = 12
SYNC_MS = 20
"""How long strace makes each sync take. How many syncs a burst needs is what arrives during one,
so a quick disk needs more of them; this gives every machine the same disk."""
SYNCS_MAX = 20
BURSTS_MAX = 8
"""A machine that stands still amid a burst cuts it in two; it does not do so each time."""

ONE_ACK = r"B\4sync"
"""The end of each ack on the wire, as strace shows it: the durability that it promises."""

BETWEEN_BUFFERS = re.compile(r'", iov_len=\d+\}, \{iov_base="')


@pytest.fixture
async def daemon() -> AsyncIterator[DaemonProcess]:
    with short_directory() as directory:
        async with running("--data-dir", str(directory)) as started:
            yield started


async def test_a_thousand_concurrent_sends_to_twelve_partitions_share_their_syncs(
    daemon: DaemonProcess,
) -> None:
    async with dss_client.connect(endpoint=daemon.endpoint) as client:
        await client.topics.create("orders", partitions=PARTITIONS)
        async with client.producer("orders") as producer:
            await producer.send(b"the first makes the file")
            async with syncs_of(daemon) as trace:
                acks = await asyncio.gather(
                    *(producer.send(b"%d" % at, key=b"k%d" % at) for at in range(SENDS))
                )
    assert len({(ack.stream, ack.offset) for ack in acks}) == SENDS
    assert len({ack.stream for ack in acks}) == PARTITIONS
    assert {ack.durability for ack in acks} == {"sync"}
    assert 1 <= sum(1 for _ in trace.calls()) <= SYNCS_MAX


async def test_frames_of_many_producers_at_once_share_their_syncs(daemon: DaemonProcess) -> None:
    async with connected(daemon.endpoint) as stubs:
        orders = await RawTopic.created(stubs, "orders", PARTITIONS)
        await orders.put(stubs, b"the first makes the file")
        producers = [RawTopic(orders.name, orders.topic_epoch) for _ in range(PARTITIONS)]
        counts = [await syncs_of_a_burst(daemon, stubs, producers)]
        while min(counts) > SYNCS_MAX and len(counts) < BURSTS_MAX:
            counts.append(await syncs_of_a_burst(daemon, stubs, producers))
    assert 1 <= min(counts) <= SYNCS_MAX, counts


async def syncs_of_a_burst(
    daemon: DaemonProcess, stubs: Stubs, producers: Sequence[RawTopic]
) -> int:
    """Let each producer send its frames, all at once."""
    sent = [
        [producer.frame(b"%d" % at, partition=partition) for at in range(SENDS // PARTITIONS)]
        for partition, producer in enumerate(producers)
    ]
    async with syncs_of(daemon) as trace:
        answers = await asyncio.gather(
            *(producer.send(stubs, *own) for producer, own in zip(producers, sent, strict=True))
        )
    assert [len(acks) for acks in answers] == [SENDS // PARTITIONS] * PARTITIONS
    return sum(1 for _ in trace.calls())


def syncs_of(daemon: DaemonProcess) -> AbstractAsyncContextManager[strace.Trace]:
    """Trace the syncs of a daemon, each of which takes `SYNC_MS`."""
    slow = f"fdatasync,fsync:delay_enter={SYNC_MS * 1000}"
    return strace.attached(daemon.process.pid, "fdatasync", "fsync", inject=slow)


async def test_no_reply_precedes_the_sync_that_covers_it(daemon: DaemonProcess) -> None:
    """Answers of one call leave in the order of its frames: so the n-th ack is the n-th frame's."""
    traced = ("pwritev", "pwritev2", "fdatasync", "sendmsg")
    async with connected(daemon.endpoint) as stubs:
        topic = await RawTopic.created(stubs, "orders", PARTITIONS)
        await topic.put(stubs, b"the first makes the file")
        async with strace.attached(daemon.process.pid, *traced) as trace:
            call = stubs.log.Produce()
            for at in range(SENDS):
                request = log_pb2.ProduceRequest(
                    topic=topic.name,
                    topic_epoch=topic.topic_epoch,
                    frames=[topic.frame(b"%d" % at, partition=at % PARTITIONS)],
                )
                await call.write(request)
            await call.done_writing()
            answered = sum([len(reply.acks) async for reply in call])
    assert answered == SENDS
    assert acked_in_order(trace) == SENDS


def acked_in_order(trace: strace.Trace) -> int:
    """How many acks left the daemon; fails where one left before its frame was durable."""
    written: list[tuple[int, int]] = []
    """Where each write ended in the trace, and how many frames there were by then."""
    frames = durable = acked = 0
    moments = [(call.began, call) for call in trace.calls() if call.name == "sendmsg"]
    moments += [(call.ended, call) for call in trace.calls() if call.name != "sendmsg"]
    for _, call in sorted(moments, key=lambda moment: moment[0]):
        match call.name:
            case "sendmsg":
                acked += BETWEEN_BUFFERS.sub("", call.arguments).count(ONE_ACK)
                assert acked <= durable, f"ack {acked} left when {durable} frames were durable"
            case "fdatasync":
                assert call.result == "0"
                covered = [count for ended, count in written if ended < call.began]
                durable = max(durable, *covered) if covered else durable
            case _:
                # A frame is two buffers: its stamped header, and the rest of it.
                frames += len(re.findall(r"iov_len=", call.arguments)) // 2
                written.append((call.ended, frames))
    return acked
