import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

import dss_client
from dss_api.v1 import sessions_pb2
from dss_client import DeliveredRecord, Subscription
from dss_client._failure import Failure
from dss_client._grant_report import GrantReport, Nak
from dss_client._reports_on_wire import sent_together, settle_of
from dss_client.limits import REFUSALS_A_REPORT
from dss_client.testing import MemoryDaemon, until
from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.errors import FrameCorrupt, IllegalArgument
from dss_core.lane import ERROR_TEXT_BYTES_MAX
from support.retry_queue import acked_in_queue, entry, retried, settles_of_queue

WAYS = ("one by one", "fetch", "batches", "run")


def fill(daemon: MemoryDaemon, *keys: bytes | None) -> None:
    """Append a frame with a record of each key."""
    frame = build_frame(
        Columns([b"x"] * len(keys), list(keys), "t"),
        partition=0,
        producer_id=b"p" * 16,
        sequence=len(daemon.streams[0].frames),
    )
    daemon.streams[0].append(frame)


@asynccontextmanager
async def lent(daemon: MemoryDaemon) -> AsyncIterator[Subscription]:
    """A subscription with one stream, to which a test delivers."""
    daemon.hold_back = True
    async with (
        asyncio.timeout(5),
        dss_client.connect(endpoint=daemon.endpoint) as client,
        client.subscribe("$share/g/t/#") as subscription,
    ):
        yield subscription


@asynccontextmanager
async def lent_lane(daemon: MemoryDaemon) -> AsyncIterator[Subscription]:
    """The same, of which a record came from the retry queue already, and was acknowledged."""
    async with lent(daemon) as subscription:
        daemon.say(deliver=retried(100, [entry(100)]))
        (record,) = await subscription.fetch(1)
        await record.ack()
        await until(lambda: acked_in_queue(daemon) == [100])
        daemon.settles.clear()
        yield subscription


async def taken(subscription: Subscription, way: str, count: int) -> list[DeliveredRecord]:
    """So many records, in a way, each acknowledged."""
    found: list[DeliveredRecord] = []
    if way == "fetch":
        found = await subscription.fetch(count)
    if way == "batches":
        batch = await anext(aiter(subscription.batches()))
        await batch.ack()
        return [*batch]
    if way == "one by one":
        records = aiter(subscription)
        found = [await anext(records) for _ in range(count)]
    if way == "run":

        async def handle(record: DeliveredRecord) -> None:
            found.append(record)

        running = asyncio.ensure_future(subscription.run(handle))
        await until(lambda: len(found) == count)
        running.cancel()
        return found
    for record in found:
        await record.ack()
    return found


async def test_a_client_says_that_it_knows_queues(daemon: MemoryDaemon) -> None:
    async with lent(daemon):
        assert [*daemon.opens[0].features] == ["queues", "ordered"]


@pytest.mark.parametrize("way", WAYS)
async def test_a_record_that_failed_before_says_where_it_comes_from_and_why_it_failed(
    daemon: MemoryDaemon, way: str
) -> None:
    async with lent(daemon) as subscription:
        entries = [entry(9, attempt=2, error_type="KeyError"), entry(5)]
        daemon.say(deliver=retried(40, entries))
        records = await taken(subscription, way, 2)
        await until(lambda: acked_in_queue(daemon) == [40, 41])
    assert [
        (each.stream, each.offset, each.level, each.attempt, each.redelivered) for each in records
    ] == [("t/0/0", 9, 1, 3, True), ("t/0/0", 5, 1, 2, True)]
    assert [(each.last_error, each.last_error_type) for each in records] == [
        ("no room", "KeyError"),
        ("no room", None),
    ]
    assert [each.headers for each in records] == [(("a", b"1"), ("b", b"2"))] * 2
    assert [each.payload for each in records] == [b"9", b"5"]
    assert [each.acked for each in records] == [True, True]
    handed_out = [each for settle in settles_of_queue(daemon) for each in settle.handed_out]
    told = [at for each in handed_out for at in range(each.start, each.end)]
    # What is acknowledged in the same report is not named beside it.
    assert set(told) <= {40, 41}
    assert {settle.frontier for settle in settles_of_queue(daemon)} == {0}
    assert {settle.grant for settle in settles_of_queue(daemon)} == {1}
    assert daemon.streams[0].frontier == 0


async def test_a_hand_out_of_the_retry_queue_is_told_by_name_before_its_nak(
    daemon: MemoryDaemon,
) -> None:
    async with lent(daemon) as subscription:
        daemon.say(deliver=retried(40, [entry(9), entry(5)]))
        first, second = await subscription.fetch(2)
        await first.nak(delay=1.5, error=ValueError("no such aircraft"))
        await second.reject("never")
        await second.in_progress()
        await until(lambda: any(each.naks for each in settles_of_queue(daemon)))
        assert [first.refused, second.refused, first.acked] == [True, True, False]
    handed_out = [each for settle in settles_of_queue(daemon) for each in settle.handed_out]
    assert [(each.start, each.end) for each in handed_out] == [(40, 42)]
    (naks,) = [[*each.naks] for each in settles_of_queue(daemon) if each.naks]
    assert naks == [
        sessions_pb2.Nak(
            start=40, end=41, delay_ms=1_500, error="no such aircraft", error_type="ValueError"
        ),
        sessions_pb2.Nak(start=41, end=42, error="never", reject=True),
    ]


async def test_a_delay_that_is_not_allowed_is_said_where_it_is_given_and_ends_nothing(
    daemon: MemoryDaemon,
) -> None:
    async with lent(daemon) as subscription:
        daemon.say(deliver=retried(40, [entry(9), entry(5)]))
        (record,) = await subscription.fetch(1)
        batch = await anext(aiter(subscription.batches()))
        for refused in (record, batch):
            with pytest.raises(IllegalArgument, match=r"delay -1 .* not negative"):
                await refused.nak(delay=-1)
        record.ack()
        await batch.ack()
        await until(lambda: acked_in_queue(daemon) == [40, 41])


async def test_a_batch_that_failed_before_has_columns_of_the_origin(daemon: MemoryDaemon) -> None:
    async with lent(daemon) as subscription:
        daemon.say(deliver=retried(40, [entry(9, attempt=2), entry(5), entry(7)]))
        (first,) = await subscription.fetch(1)
        batch = await anext(aiter(subscription.batches()))
        assert (first.offset, first.acked) == (9, False)
        assert (batch.level, batch.attempt, batch.redelivered) == (1, 2, True)
        assert (batch.stream, [*batch.offsets], len(batch)) == ("t/0/0", [5, 7], 2)
        assert [*batch.headers] == [(("a", b"1"), ("b", b"2"))] * 2
        assert [*batch.append_times_us] == [1_005, 1_007]
        table = batch.to_arrow()
        assert table["offset"].to_pylist() == [5, 7]
        assert table["append_time_us"].to_pylist() == [1_005, 1_007]
        assert table["headers"].to_pylist() == [[("a", b"1"), ("b", b"2")]] * 2
        assert [each.offset for each in batch] == [5, 7]
        await batch.reject(KeyError("k"))
        await until(lambda: any(each.naks for each in settles_of_queue(daemon)))
    (naks,) = [[*each.naks] for each in settles_of_queue(daemon) if each.naks]
    error = sessions_pb2.Nak(start=41, end=43, error="'k'", error_type="KeyError", reject=True)
    assert naks == [error]


async def test_a_record_of_the_stream_itself_is_of_level_0(daemon: MemoryDaemon) -> None:
    fill(daemon, b"a")
    async with lent(daemon) as subscription:
        daemon.deliver(1)
        (record,) = await subscription.fetch(1)
    assert (record.level, record.attempt) == (0, 1)
    assert (record.last_error, record.last_error_type) == (None, None)


async def test_each_hand_out_of_an_entry_counts_as_an_attempt(daemon: MemoryDaemon) -> None:
    async with lent(daemon) as subscription:
        for hand_outs in (1, 2, 3):
            daemon.say(deliver=retried(40 + hand_outs, [entry(9)], hand_outs=hand_outs))
        records = await subscription.fetch(3)
    assert [each.attempt for each in records] == [2, 2, 3]


async def test_an_entry_without_an_error_says_none(daemon: MemoryDaemon) -> None:
    async with lent(daemon) as subscription:
        daemon.say(deliver=retried(40, [entry(9)], error=None))
        (record,) = await subscription.fetch(1)
    assert record.last_error is None


async def test_what_is_no_entry_is_refused(daemon: MemoryDaemon) -> None:
    fill(daemon, b"a")
    async with lent(daemon) as subscription:
        _, frames = daemon.streams[0].frames[0]
        daemon.say(deliver=sessions_pb2.Deliver(grant=1, frames=frames, level=1))
        with pytest.raises(FrameCorrupt, match="does not say what it is"):
            await subscription.fetch(1)


async def test_a_lane_is_given_back_once_all_its_levels_are_settled(daemon: MemoryDaemon) -> None:
    fill(daemon, b"a")
    async with lent(daemon) as subscription:
        daemon.deliver(1)
        daemon.say(deliver=retried(40, [entry(9), entry(5)]))
        records = await subscription.fetch(2)
        daemon.revoke(1)
        await until(lambda: records[0].grant_over or subscription._inbox == deque())
        await records[0].ack()
        await until(lambda: daemon.acknowledged() == 1)
        assert daemon.revoke_finished == []
        await records[1].ack()
        await until(lambda: daemon.revoke_finished == [1])
    # The third was dropped, and what was reported came first.
    assert acked_in_queue(daemon) == [40]
    assert all(each.grant_over for each in records)


async def test_an_ack_after_the_lane_is_over_is_counted_as_late(daemon: MemoryDaemon) -> None:
    async with lent(daemon) as subscription:
        daemon.say(deliver=retried(40, [entry(9)]))
        (record,) = await subscription.fetch(1)
        daemon.say(revoked=sessions_pb2.Revoked(grant=1, reason="evicted"))
        await until(lambda: record.grant_over)
        await record.ack()
        assert subscription.late_acks == 1


async def test_what_comes_from_a_queue_does_not_mark_later_records_of_the_stream(
    daemon: MemoryDaemon,
) -> None:
    fill(daemon, b"a")
    async with lent_lane(daemon) as subscription:
        daemon.revoke(1)
        await until(lambda: daemon.revoke_finished == [1])
        daemon.deliver(daemon.grant(daemon.subscribes[0].subscription, 0))
        (record,) = await subscription.fetch(1)
    assert not record.redelivered


async def test_an_ack_of_a_retried_record_is_waited_for(daemon: MemoryDaemon) -> None:
    daemon.mute_settled = True
    async with lent(daemon) as subscription:
        daemon.say(deliver=retried(40, [entry(9)]))
        (record,) = await subscription.fetch(1)
        acking = asyncio.ensure_future(record.ack(sync=True))
        await until(lambda: any(each.token for each in settles_of_queue(daemon)))
        assert not acking.done()
        (settle,) = [each for each in settles_of_queue(daemon) if each.token]
        daemon.mute_settled = False
        daemon.say(settled=sessions_pb2.Settled(token=settle.token))
        await acking


@pytest.mark.parametrize("lane", [False, True])
async def test_only_in_a_lane_later_records_of_a_key_do_not_wait_for_a_failed_one(
    daemon: MemoryDaemon, lane: bool
) -> None:
    handled: list[int] = []

    async def handle(record: DeliveredRecord) -> None:
        handled.append(record.offset)
        if record.offset == 0:
            raise ValueError

    fill(daemon, b"k", b"k")
    async with lent_lane(daemon) if lane else lent(daemon) as subscription:
        daemon.deliver(1)
        running = asyncio.ensure_future(subscription.run(handle))
        await until(lambda: any(settle.naks for settle in daemon.settles))
        await until(lambda: len(handled) == 1 + lane)
        await subscription.drain()
        await running
    assert handled == [0, 1] if lane else [0]


@pytest.mark.parametrize("way", ["one by one", "fetch", "batches"])
async def test_what_a_cancelled_run_had_not_handed_out_is_no_failed_attempt(
    daemon: MemoryDaemon, way: str
) -> None:
    handled: list[int] = []
    work = asyncio.Event()

    async def handle(record: DeliveredRecord) -> None:
        handled.append(record.offset)
        await work.wait()

    fill(daemon, b"k", b"l", b"m", b"n")
    async with lent_lane(daemon) as subscription:
        daemon.deliver(1)
        running = asyncio.ensure_future(subscription.run(handle, concurrency=1))
        await until(lambda: handled == [0])
        running.cancel()
        await asyncio.wait([running])
        seen = await taken(subscription, way, 3)
        await until(lambda: daemon.acknowledged() == 3)
    assert [(each.offset, each.attempt, each.redelivered) for each in seen] == [
        (1, 1, False),
        (2, 1, False),
        (3, 1, False),
    ]
    # Only the one that a handler had failed, and says why.
    naks = [nak for settle in daemon.settles for nak in settle.naks]
    assert [(each.start, each.end, each.error) for each in naks] == [
        (0, 1, "its handler was cancelled")
    ]


async def test_records_of_a_key_of_both_levels_are_never_handled_at_once(
    daemon: MemoryDaemon,
) -> None:
    most, busy, handled = 0, 0, 0

    async def handle(record: DeliveredRecord) -> None:
        nonlocal busy, most, handled
        busy += 1
        most = max(most, busy)
        await asyncio.sleep(0)
        busy -= 1
        handled += 1

    fill(daemon, b"k", b"k")
    async with lent(daemon) as subscription:
        daemon.deliver(1)
        daemon.say(deliver=retried(40, [entry(9), entry(5)]))
        running = asyncio.ensure_future(subscription.run(handle))
        await until(lambda: handled == 4)
        await subscription.drain()
        await running
    assert most == 1
    assert (daemon.acknowledged(), acked_in_queue(daemon)) == (2, [40, 41])


async def test_what_a_handler_raises_is_told_and_logged(
    daemon: MemoryDaemon, caplog: pytest.LogCaptureFixture
) -> None:
    raised = {
        b"a": ValueError("no such aircraft"),
        b"b": dss_client.Reject("the payload is empty"),
        b"c": Unspeakable(),
    }

    async def handle(record: DeliveredRecord) -> None:
        assert record.key is not None
        if record.key == b"b":
            raise raised[b"b"] from KeyError("speed")
        raise raised[record.key]

    fill(daemon, b"a", b"b", b"c")
    async with lent_lane(daemon) as subscription:
        daemon.deliver(1)
        running = asyncio.ensure_future(subscription.run(handle))
        await until(lambda: sum(len(settle.naks) for settle in daemon.settles) == 3)
        await subscription.drain()
        await running
    naks = [nak for settle in daemon.settles for nak in settle.naks]
    assert naks == [
        sessions_pb2.Nak(start=0, end=1, error="no such aircraft", error_type="ValueError"),
        sessions_pb2.Nak(
            start=1, end=2, error="the payload is empty", error_type="KeyError", reject=True
        ),
        sessions_pb2.Nak(start=2, end=3, error="its text cannot be made", error_type="Unspeakable"),
    ]
    lines = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert lines[0].getMessage() == (
        "the handler failed: stream=t/0/0 offset=0 key=b'a' attempt=1 error_type=ValueError "
        "error='no such aircraft'; it is refused"
    )
    assert lines[1].getMessage() == (
        "the handler failed: stream=t/0/0 offset=1 key=b'b' attempt=1 error_type=KeyError "
        "error='the payload is empty'; it is rejected"
    )
    assert [getattr(each, "dss_offset", None) for each in lines] == [0, 1, 2]


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


async def test_a_long_error_is_cut(daemon: MemoryDaemon) -> None:
    async with lent(daemon) as subscription:
        daemon.say(deliver=retried(40, [entry(9)]))
        (record,) = await subscription.fetch(1)
        await record.nak(error="\udcff" + "ä" * (1 << 20))
        await until(lambda: any(each.naks for each in settles_of_queue(daemon)))
    (error,) = [nak.error for each in settles_of_queue(daemon) for nak in each.naks]
    assert ERROR_TEXT_BYTES_MAX - 1 <= len(error.encode()) <= ERROR_TEXT_BYTES_MAX


def test_refusals_with_texts_go_out_in_messages_that_the_daemon_takes() -> None:
    text = "x" * ERROR_TEXT_BYTES_MAX
    naks = tuple(Nak(at, at + 1, None, Failure(text, text)) for at in range(0, 6_000, 2))
    report = GrantReport(1, ((9_000, 9_001),), (), (), naks, 0, 7)
    reports = deque([*report.pieces(4_096), GrantReport(2, ((1, 2),), (), (), (), 0, 0)])
    messages: list[list[sessions_pb2.Settle]] = []
    while reports:
        messages.append([settle_of(each) for each in sent_together(reports)])
    assert max(sum(settle.ByteSize() for settle in each) for each in messages) < 4 << 20
    settles = [settle for each in messages for settle in each]
    assert [nak.start for settle in settles for nak in settle.naks] == [*range(0, 6_000, 2)]
    assert [(each.grant, each.token) for each in settles[-2:]] == [(1, 7), (2, 0)]
    assert len(messages) == -(-len(naks) // REFUSALS_A_REPORT)
