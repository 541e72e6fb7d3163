"""What `MemoryDaemon` answers is what the daemon answers.

Each test runs twice, against a daemon in memory and against a real one, over the same raw stubs.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc.aio
import pytest
import pytest_asyncio

from dss_api.v1 import log_pb2, sessions_pb2, topics_pb2, types_pb2
from dss_client.testing import MemoryDaemon
from dss_core.decode import decode
from dss_core.errors import (
    AckOutOfRange,
    DssError,
    FrameCorrupt,
    GrantNotHeld,
    IllegalArgument,
    IllegalFilter,
    IllegalName,
    NotOpened,
    NotSubscribed,
    OffsetOutOfRange,
    SequenceGap,
    SessionNotFound,
    SessionTakenOver,
    StaleTopicEpoch,
    StreamNotFound,
    SubjectOutsideTopic,
    TopicNotFound,
)
from support.daemon_process import DaemonProcess, running, short_directory
from support.either_daemon import Call, Seen, Under, frame, subscribe
from support.raw_stubs import condition, condition_of, connected, produced

pytestmark = pytest.mark.asyncio(loop_scope="module")

Range = types_pb2.Range


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def process() -> AsyncIterator[DaemonProcess]:
    """One real daemon for all the tests that a process runs."""
    with short_directory() as home:
        arguments = ("--data-dir", str(home / "data"), "--listen", f"unix:{home / 'd.sock'}")
        async with running(*arguments) as daemon:
            yield daemon


@asynccontextmanager
async def under_memory() -> AsyncIterator[Under]:
    with short_directory() as home:
        async with (
            MemoryDaemon(home / "d.sock") as daemon,
            connected(daemon.endpoint) as stubs,
        ):
            yield Under(stubs, 1, daemon)


@asynccontextmanager
async def under_process(process: DaemonProcess) -> AsyncIterator[Under]:
    async with connected(process.endpoint) as stubs:
        create = topics_pb2.CreateTopicRequest(name="t", partitions=2)
        topic = await stubs.topics.Create(create)
        yield Under(stubs, topic.topic_epoch, None)
        await stubs.topics.Remove(topics_pb2.RemoveTopicRequest(name="t", force=True))


@pytest_asyncio.fixture(params=["memory", "process"], loop_scope="module")
async def under(request: pytest.FixtureRequest, process: DaemonProcess) -> AsyncIterator[Under]:
    daemon = under_memory() if request.param == "memory" else under_process(process)
    async with daemon as opened:
        yield opened


# Publishing


async def test_an_ack_names_the_place_of_its_frame(under: Under) -> None:
    reply = await under.produce(
        frame(0, b"a", b"b"), frame(1, b"c"), frame(0, b"d", partition=1, subject="t/x/y")
    )
    assert list(reply.refusals) == []
    places = [(a.partition, a.sequence, a.base_offset, a.records) for a in reply.acks]
    assert sorted(places) == [(0, 0, 0, 2), (0, 1, 2, 1), (1, 0, 0, 1)]
    assert {(a.ordinal, a.repeated, a.durability) for a in reply.acks} == {(0, False, "sync")}
    assert all(ack.append_time_us > 0 for ack in reply.acks)


async def test_a_repeated_frame_gets_its_first_answer_again(under: Under) -> None:
    frames = frame(0, b"a", b"b"), frame(1, b"c")
    first = await under.produce(*frames)
    again = await under.produce(*frames, frame(0, b"x", producer=b"q" * 16))
    for ack in first.acks:
        ack.repeated = True
    assert list(again.acks)[:2] == list(first.acks)
    assert (again.acks[2].base_offset, again.acks[2].repeated) == (3, False)


async def test_a_gap_in_the_sequence_is_refused_until_it_is_filled(under: Under) -> None:
    reply = await under.produce(frame(5, b"a"), frame(7, b"c"), frame(6, b"b"), frame(7, b"c"))
    assert [(ack.sequence, ack.base_offset) for ack in reply.acks] == [(5, 0), (6, 1), (7, 2)]
    (refusal,) = reply.refusals
    assert (refusal.partition, refusal.sequence, type(condition(refusal.error))) == (
        0,
        7,
        SequenceGap,
    )
    assert refusal.error.definite
    fields = {"given": "7", "expected_after": "5", "stream": "t/0/0"}
    assert dict(refusal.error.fields) == fields


@pytest.mark.parametrize(
    ("topic", "epoch_ahead", "broken", "wanted"),
    [
        ("unknown", 0, frame(0, b"a"), TopicNotFound),
        ("", 0, frame(0, b"a"), IllegalArgument),
        ("t", 1, frame(0, b"a"), StaleTopicEpoch),
        ("t", 0, frame(0, b"a", partition=2), StreamNotFound),
        ("t", 0, frame(0, b"a", subject="other"), SubjectOutsideTopic),
        ("t", 0, frame(0, b"a")[:-1] + b"\xff", FrameCorrupt),
        ("t", 0, b"no frame", FrameCorrupt),
    ],
)
async def test_a_frame_that_cannot_be_stored_is_refused_and_stores_nothing(
    under: Under, topic: str, epoch_ahead: int, broken: bytes, wanted: type[DssError]
) -> None:
    reply = await produced(under.stubs, topic, under.topic_epoch + epoch_ahead, broken)
    assert [type(condition(refusal.error)) for refusal in reply.refusals] == [wanted]
    (ack,) = (await under.produce(frame(0, b"a"))).acks
    assert ack.base_offset == 0


async def test_an_unknown_topic_is_not_described(under: Under) -> None:
    topic = await under.stubs.topics.Describe(topics_pb2.DescribeTopicRequest(name="t"))
    assert (topic.name, topic.topic_epoch, list(topic.patterns)) == (
        "t",
        under.topic_epoch,
        ["t/#"],
    )
    assert [(s.ordinal, s.partitions, s.factor) for s in topic.storage_topics] == [(0, 2, 1)]
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await under.stubs.topics.Describe(topics_pb2.DescribeTopicRequest(name="unknown"))
    assert refused.value.code() is grpc.StatusCode.NOT_FOUND
    assert type(condition_of(refused.value)) is TopicNotFound


# Reading


async def read(under: Under, **fields: Any) -> dict[str, list[tuple[int, bytes]]]:  # noqa: ANN401 # fields of ReadRequest
    """By stream: offsets and payloads."""
    found: dict[str, list[tuple[int, bytes]]] = {}
    async for reply in under.stubs.log.Read(log_pb2.ReadRequest(**fields)):
        for name in reply.streams:
            found.setdefault(name, [])
        if reply.frames:
            decoded = decode(reply.frames, tuple((each.start, each.end) for each in reply.mask))
            found[reply.stream] += zip(decoded.offsets, decoded.payloads, strict=True)
    return found


async def test_a_read_gives_what_matches_from_its_start_on(under: Under) -> None:
    await under.produce(
        frame(0, b"a", b"b"), frame(1, b"c", subject="t/x"), frame(0, b"d", partition=1)
    )
    whole = {"t/0/0": [(0, b"a"), (1, b"b"), (2, b"c")], "t/0/1": [(0, b"d")]}
    assert await read(under, filter="#") == whole
    assert await read(under, filter="t/x") == {"t/0/0": [(2, b"c")], "t/0/1": []}
    assert await read(under, filter="t/#", start=types_pb2.Start(now=True)) == {
        "t/0/0": [],
        "t/0/1": [],
    }
    start = types_pb2.Start(offset=1)
    assert await read(under, stream="t/0/0", start=start) == {"t/0/0": [(1, b"b"), (2, b"c")]}
    assert await read(under, stream="t/0/0", records_max=1) == {"t/0/0": [(0, b"a")]}
    assert await read(under, filter="other/#") == {}


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"filter": "a#"}, IllegalFilter),
        ({"stream": "t/0/2"}, StreamNotFound),
        ({"stream": "t"}, IllegalName),
        ({"stream": "t/0/0", "start": types_pb2.Start(offset=9)}, OffsetOutOfRange),
        ({"filter": "#", "start": types_pb2.Start(offset=0)}, IllegalArgument),
    ],
)
async def test_a_wrong_read_ends_with_its_condition(
    under: Under, fields: dict[str, Any], wanted: type[DssError]
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await read(under, **fields)
    assert type(condition_of(refused.value)) is wanted


# Sessions


async def test_a_session_is_opened_first_and_once(under: Under) -> None:
    call = Call(under.stubs)
    await call.say(ping=sessions_pb2.Ping(token=1))
    assert await call.refusal() is NotOpened
    opened = await call.opened(client_id="c")
    assert (opened.client_id, opened.session_present) == ("c", False)
    await call.say(open=sessions_pb2.Open())
    assert await call.refusal() is IllegalArgument
    await call.say()
    assert await call.refusal() is IllegalArgument
    await call.say(ping=sessions_pb2.Ping(token=2))
    assert (await call.hear("pong")).token == 2


async def test_a_client_id_is_chosen_where_none_is_given(under: Under) -> None:
    opened = await Call(under.stubs).opened()
    assert opened.client_id


async def test_a_session_is_resumed_by_its_id(under: Under) -> None:
    first = await Call(under.stubs).opened(client_id="r")
    call = Call(under.stubs)
    again = await call.opened(client_id="r", session_id=first.session_id)
    assert (again.session_id, again.session_present) == (first.session_id, True)
    assert again.session_epoch == first.session_epoch + 1


async def test_a_session_that_is_not_there_is_told_from_one_that_another_client_discarded(
    under: Under,
) -> None:
    lost = {"client_id": "l", "session_id": b"x" * 16}
    assert await refused_opening(under, **lost) is SessionNotFound
    present = Call(under.stubs)
    await present.opened(client_id="l", clean_start=True)
    assert await refused_opening(under, **lost) is SessionTakenOver
    # The one that is there stays.
    await present.say(ping=sessions_pb2.Ping(token=1))
    assert (await present.hear("pong")).token == 1


async def refused_opening(under: Under, **opening: Any) -> type[DssError]:  # noqa: ANN401 # its fields
    """Why a session is not opened; the call ends with it."""
    call = Call(under.stubs)
    await call.say(open=sessions_pb2.Open(**opening))
    error = await call.hear("error")
    assert error.final
    assert await call.call.read() is grpc.aio.EOF
    return type(condition(error.error))


async def test_a_newer_connection_takes_the_session_over(under: Under) -> None:
    old = Call(under.stubs)
    await old.opened(client_id="o")
    await Call(under.stubs).opened(client_id="o")
    error = await old.hear("error")
    assert (type(condition(error.error)), error.final) == (SessionTakenOver, True)
    assert await old.call.read() is grpc.aio.EOF


async def test_an_older_client_gives_back_what_it_did_not_hand_out_before_a_newer_begins(
    under: Under,
) -> None:
    await under.produce(frame(0, b"a", b"b"))
    old, new = Call(under.stubs), Call(under.stubs)
    await old.opened(client_id="d")
    lent = await old.lent()
    await old.records(2)
    new.filter = old.filter
    await new.say(open=sessions_pb2.Open(client_id="d", clean_start=True))
    asked = [await old.hear("revoke") for _ in range(2)]
    assert {each.grant for each in asked} == {each.grant for each in lent.values()}
    assert {each.deadline_ms for each in asked} == {old.session.lease_ms // 2}
    handed_out = lent["t/0/0"].grant
    await old.settle(handed_out, frontier=1)
    for each in asked:
        await old.say(revoke_finished=sessions_pb2.RevokeFinished(grant=each.grant))
    error = await old.hear("error")
    assert (type(condition(error.error)), error.final) == (SessionTakenOver, True)
    assert await old.call.read() is grpc.aio.EOF
    await new.hear("opened")
    await new.lent()
    seen = [(each.offset, each.redelivered, each.attempt) for each in await new.records(2)]
    assert seen == [(0, True, 2), (1, False, 1)]


async def test_the_first_subscription_declares_its_group(under: Under) -> None:
    call = Call(under.stubs)
    await call.opened()
    heard = []
    for number in (1, 2):
        await call.say(subscribe=subscribe(number, call.filter))
        heard.append(await call.hear("subscribed"))
        await call.leave(number)
    group = call.filter.split("/")[1]
    assert [(each.subscription, each.group, each.declared) for each in heard] == [
        (1, group, True),
        (2, group, False),
    ]


async def test_wrong_subscriptions_are_refused(under: Under) -> None:
    call = Call(under.stubs)
    await call.opened()
    for number, text, wanted in (
        (3, "$share/g/a#", IllegalFilter),
        (0, call.filter, IllegalArgument),
    ):
        await call.say(subscribe=subscribe(number, text))
        error = await call.hear("error")
        assert (type(condition(error.error)), error.subscription, error.final) == (
            wanted,
            number,
            False,
        )
    await call.say(unsubscribe=sessions_pb2.Unsubscribe(subscription=9))
    error = await call.hear("error")
    assert (type(condition(error.error)), error.subscription) == (NotSubscribed, 9)


# Delivery


async def test_streams_are_lent_and_their_records_delivered(under: Under) -> None:
    await under.produce(frame(0, b"a", b"b"), frame(0, b"x", partition=1))
    call = Call(under.stubs)
    await call.opened()
    lent = await call.lent()
    assert sorted(lent) == ["t/0/0", "t/0/1"]
    assert {each.subscription for each in lent.values()} == {1}
    assert {(each.progress.floor, len(each.progress.ranges)) for each in lent.values()} == {(0, 0)}
    seen = await call.records(3)
    first, second = lent["t/0/0"].grant, lent["t/0/1"].grant
    places = sorted((each.grant, each.offset, each.payload) for each in seen)
    assert places == sorted([(first, 0, b"a"), (first, 1, b"b"), (second, 0, b"x")])
    assert {(each.redelivered, each.attempt) for each in seen} == {(False, 1)}
    await under.produce(frame(1, b"c"))
    (later,) = await call.records(1)
    assert later == Seen(first, 2, b"c", redelivered=False, attempt=1)


async def test_what_is_acknowledged_does_not_come_again(under: Under) -> None:
    await under.produce(frame(0, b"a", b"b", b"c", b"d"))
    call = Call(under.stubs)
    await call.opened()
    grant = (await call.lent())["t/0/0"].grant
    await call.records(4)
    await call.settled(grant, (0, 1), (2, 3), frontier=4)
    again = await call.again()
    progress = (await again.lent())["t/0/0"].progress
    assert (progress.floor, [(r.start, r.end) for r in progress.ranges]) == (1, [(2, 3)])
    assert [each.offset for each in await again.records(2)] == [1, 3]


async def test_what_was_sent_comes_again_marked_after_a_lost_connection(under: Under) -> None:
    await under.produce(frame(0, b"a", b"b"))
    call = Call(under.stubs)
    await call.opened()
    await call.lent()
    await call.records(2)
    again = await call.again()
    await again.lent()
    assert [(each.offset, each.redelivered) for each in await again.records(2)] == [
        (0, True),
        (1, True),
    ]


async def test_a_final_report_says_what_was_handed_out(under: Under) -> None:
    await under.produce(frame(0, b"a", b"b"), frame(1, b"c"))
    call = Call(under.stubs)
    await call.opened()
    grant = (await call.lent())["t/0/0"].grant
    await call.records(3)
    await call.settle(grant, frontier=2)
    await call.say(revoke_finished=sessions_pb2.RevokeFinished(grant=grant))
    await call.hear("revoked")
    again = await call.again()
    await again.lent()
    assert [(each.offset, each.redelivered) for each in await again.records(3)] == [
        (0, True),
        (1, True),
        (2, False),
    ]


async def test_a_nak_brings_its_records_again_marked(under: Under) -> None:
    await under.produce(frame(0, b"a", b"b", b"c"))
    call = Call(under.stubs)
    await call.opened()
    grant = (await call.lent())["t/0/0"].grant
    await call.records(3)
    naks = [sessions_pb2.Nak(start=1, end=2, delay_ms=10)]
    await call.settle(grant, (0, 1), naks=naks, frontier=3)
    (again,) = await call.records(1)
    assert again == Seen(grant, 1, b"b", redelivered=True, attempt=2)
    await call.settle(grant, naks=naks, handed_out=[Range(start=1, end=2)], frontier=3)
    (again,) = await call.records(1)
    assert again == Seen(grant, 1, b"b", redelivered=True, attempt=3)
    await call.settled(grant, (1, 3), frontier=3)


async def test_wrong_settles_are_refused(under: Under) -> None:
    await under.produce(frame(0, b"a"))
    call = Call(under.stubs)
    await call.opened()
    grant = (await call.lent())["t/0/0"].grant
    await call.records(1)
    unknown = grant + 1_000
    await call.settle(unknown, (0, 1), frontier=1)
    error = await call.hear("error")
    assert (type(condition(error.error)), error.grant, error.final) == (
        GrantNotHeld,
        unknown,
        False,
    )
    await call.settle(grant, (0, 5), frontier=1)
    error = await call.hear("error")
    assert (type(condition(error.error)), error.grant, error.final) == (AckOutOfRange, grant, False)
    await call.settled(grant, (0, 1), frontier=1)


async def test_a_revoked_grant_is_over_once_the_client_has_finished(under: Under) -> None:
    await under.produce(frame(0, b"a"), frame(0, b"x", partition=1))
    call = Call(under.stubs)
    await call.opened()
    await call.lent()
    await call.records(2)
    grant = await under.revoke_one(call)
    await call.settle(grant, (0, 1), frontier=1)
    await call.say(revoke_finished=sessions_pb2.RevokeFinished(grant=grant))
    assert (await call.hear("revoked")).grant == grant
    for acked, token, named in (((0, 1),), 0, "0"), (((0, 1),), 7, "7"), ((), 8, "0"):
        await call.settle(grant, *acked, frontier=1, token=token)
        refused = condition((await call.hear("error")).error)
        assert (type(refused), refused.fields["token"]) == (GrantNotHeld, named)
