"""Messages of the facade over a real daemon (rows A of the checklist, and what is said of them)."""

import asyncio
from typing import Any

import pytest

import dss_client
from dss_client.jetstream import AckPolicy, AckSubject, JetStream, Msg, PushSubscription, context
from dss_client.jetstream.message import as_messages
from dss_client.producer import Producer
from dss_core.errors import (
    IllegalArgument,
    JetStreamMisuse,
    MessageSettled,
    NoMatchingStream,
    NotOffered,
)
from support.jetstream_worlds import STREAM, DssWorld, nothing_comes, taken, until


async def published(world: DssWorld, count: int, subject: str = "orders.eu") -> None:
    for number in range(count):
        await world.publish(subject, b"%d" % number)


async def pushed(js: JetStream, durable: str | None = None, **config: Any) -> PushSubscription:  # noqa: ANN401
    made = await js.subscribe("orders.>", durable=durable, **config)
    assert isinstance(made, PushSubscription)
    return made


async def floor_of(world: DssWorld, name: str, wanted: int) -> int | None:
    """The floor of a consumer, once it is so far, or a while later."""
    found: list[int | None] = []

    async def told() -> bool:
        floor = (await world.js.consumer_info(STREAM, name)).ack_floor
        found.append(None if floor is None else floor.stream_seq)
        return found[-1] == wanted

    await until(told)
    return found[-1]


async def test_a_message_says_what_it_is_and_where_it_came_from(world: DssWorld) -> None:
    await world.js.publish("orders.eu.7", b"12.50", headers={"currency": "EUR", "Status": "new"})
    message = await (await pushed(world.js, "d")).next_msg(2)
    assert (message.subject, message.data) == ("orders.eu.7", b"12.50")
    # H02: a header of that name is the publisher's own.
    assert message.headers == message.header == {"currency": "EUR", "Status": "new"}
    told = AckSubject.parse(message.reply)
    assert (told.stream, told.consumer, told.stream_seq, told.num_delivered) == (STREAM, "d", 1, 1)
    assert (told.domain, told.more) == ("", ("0-0", "1"))
    assert told.timestamp_ns == message.timestamp_us * 1_000
    assert message.metadata.partition == "ORDERS/0/0"


async def test_a04_a05_a07_the_first_answer_counts(world: DssWorld) -> None:
    await published(world, 3)
    sub = await pushed(world.js, "d")
    acked, refused, ended = [await sub.next_msg(2) for _ in range(3)]
    await acked.in_progress()
    await acked.in_progress()
    await acked.ack()
    await asyncio.gather(acked.nak(), acked.term(), acked.in_progress())
    await refused.nak()
    await refused.ack()
    await ended.term()
    await ended.nak()
    again = await sub.next_msg(2)
    assert (again.data, again.metadata.num_delivered) == (b"1", 2)
    await again.ack()
    assert await nothing_comes(sub)
    assert await floor_of(world, "d", 3) == 3
    assert acked.is_acked


async def test_a04_strict_acks_tell_of_the_second_one(world: DssWorld) -> None:
    await published(world, 1)
    strict = world.client.jetstream(strict_acks=True)
    message = await (await pushed(strict, "d")).next_msg(2)
    await message.in_progress()
    await message.ack()
    for again in (message.nak, message.term, message.ack_sync):
        with pytest.raises(MessageSettled):
            await again()
    with pytest.raises(MessageSettled):
        message.ack()


async def test_a06_a09_an_ack_that_nobody_answers_may_be_repeated(world: DssWorld) -> None:
    await published(world, 2)
    sub = await pushed(world.js, "d")
    message, other = await sub.next_msg(2), await sub.next_msg(2)
    with pytest.raises(TimeoutError):
        await message.ack_sync(timeout=0)
    await message.ack_sync(timeout=5)
    await message.ack_sync(timeout=0)  # nothing is asked any more
    await other.ack_sync(timeout=5)
    # It was durable when it returned.
    assert await floor_of(world, "d", 2) == 2


async def test_a06_a_delay_that_is_none_refuses_nothing(world: DssWorld) -> None:
    await published(world, 1)
    sub = await pushed(world.js, "d")
    message = await sub.next_msg(2)
    with pytest.raises(IllegalArgument):
        await message.nak(delay=1e9)
    await message.ack_sync(5)
    assert await floor_of(world, "d", 1) == 1


async def test_a_full_window_keeps_no_end_waiting(world: DssWorld) -> None:
    await published(world, 3)
    seen: list[Msg] = []
    first = asyncio.Event()

    async def keep(message: Msg) -> None:
        seen.append(message)
        first.set()

    sub = await world.js.subscribe(
        "orders.>", durable="d", cb=keep, manual_ack=True, max_ack_pending=1
    )
    assert isinstance(sub, PushSubscription)
    await first.wait()
    served = sub._served
    assert served is not None
    async with asyncio.timeout(5):
        await sub.unsubscribe()
        await served
    assert [each.data for each in seen] == [b"0"]


async def test_a02_a15_a_delay_is_kept_and_none_is_at_once(world: DssWorld) -> None:
    await published(world, 2)
    sub = await pushed(world.js, "d")
    first, second = await sub.next_msg(2), await sub.next_msg(2)
    loop = asyncio.get_running_loop()
    began = loop.time()
    await first.nak(delay=0.4)
    await second.nak(delay=-1)
    assert (await sub.next_msg(2)).data == b"1"
    assert (await sub.next_msg(2)).data == b"0"
    assert loop.time() - began >= 0.35


async def test_a08_without_acks_nothing_is_answered(world: DssWorld) -> None:
    await published(world, 3)
    sub = await pushed(world.js, "d", ack_policy=AckPolicy.NONE)
    for number in range(3):
        message = await sub.next_msg(2)
        assert message.data == b"%d" % number
        await message.nak()
        await message.term()
        await message.in_progress()
        await message.ack()
        await message.ack_sync(timeout=0)
    assert await nothing_comes(sub)
    assert await floor_of(world, "d", 3) == 3


async def test_a11_a_callback_that_returns_acknowledges(world: DssWorld) -> None:
    seen: list[Msg] = []
    told: list[Exception] = []
    done = asyncio.Event()

    async def callback(message: Msg) -> None:
        seen.append(message)
        if message.data == b"1" and message.metadata.num_delivered == 1:
            raise ValueError("not now")
        if message.data == b"2":
            await message.nak(delay=60)
        if len(seen) == 4:
            done.set()

    async def error_cb(error: Exception) -> None:
        told.append(error)

    js = world.client.jetstream(error_cb=error_cb)
    await js.subscribe("orders.>", durable="d", cb=callback, ack_wait=1.0)
    await published(world, 3)
    async with asyncio.timeout(10):
        await done.wait()
    assert [each.data for each in seen] == [b"0", b"1", b"2", b"1"]
    assert [str(each) for each in told] == ["not now"]
    assert await floor_of(world, "d", 2) == 2


@pytest.mark.parametrize("ordered", [False, True], ids=["push", "ordered"])
async def test_callbacks_that_fail_end_neither_the_subscription_nor_the_client(
    world: DssWorld, caplog: pytest.LogCaptureFixture, *, ordered: bool
) -> None:
    seen: list[bytes] = []
    told: list[str] = []
    done = asyncio.Event()

    async def callback(message: Msg) -> None:
        seen.append(message.data)
        if message.data == b"1":
            gone = asyncio.get_running_loop().create_future()
            gone.cancel()
            await gone
        if message.data == b"2":
            done.set()
            return
        raise ValueError("not now")

    async def error_cb(error: Exception) -> None:
        told.append(str(error))
        raise KeyError("not told")

    js = world.client.jetstream(error_cb=error_cb)
    if ordered:
        await js.subscribe("orders.>", ordered_consumer=True, cb=callback)
    else:
        await js.subscribe("orders.>", durable="d", cb=callback)
    await published(world, 3)
    async with asyncio.timeout(10):
        await done.wait()
    assert seen == [b"0", b"1", b"2"]
    assert told == ["not now", "what the callback awaited was cancelled"]
    assert caplog.text.count("the error callback of the subscription to") == 2


async def test_a11_a_callback_that_acknowledges_by_itself_goes_on_with_strict_acks(
    world: DssWorld,
) -> None:
    told: list[Exception] = []
    done = asyncio.Event()

    async def callback(message: Msg) -> None:
        await message.ack()
        if message.data == b"2":
            done.set()

    async def error_cb(error: Exception) -> None:
        told.append(error)

    await published(world, 3)
    js = world.client.jetstream(error_cb=error_cb, strict_acks=True)
    await js.subscribe("orders.>", durable="d", cb=callback)
    async with asyncio.timeout(10):
        await done.wait()
    assert await floor_of(world, "d", 3) == 3
    assert told == []


async def test_a15_the_first_step_of_a_back_off_is_the_ack_wait(world: DssWorld) -> None:
    sub = await pushed(world.js, "d", max_deliver=4, backoff=[1.0, 5.0, 30.0], ack_wait=1e9)
    group = (await world.client.groups.describe("d")).group
    assert (group.ack_wait_ms, group.backoff_ms) == (1_000, (0, 4_000, 29_000))
    info = await sub.consumer_info()
    assert (info.config.ack_wait, info.config.backoff) == (1.0, [1.0, 5.0, 30.0])
    # Another ack wait is no other consumer: the back-off has it.
    await world.js.add_consumer(STREAM, info.config, ack_wait=7.0)


async def test_many_that_publish_at_once_share_one_producer(
    world: DssWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    class Noted(Producer):
        def __init__(self, *args: Any, **given: Any) -> None:  # noqa: ANN401
            made.append(args[1])
            super().__init__(*args, **given)

    monkeypatch.setattr(context, "Producer", Noted)
    js = world.client.jetstream()
    acks = await asyncio.gather(*(js.publish("orders.eu", b"") for _ in range(16)))
    assert sorted(each.seq or 0 for each in acks) == [*range(1, 17)]
    assert made == [STREAM]


async def test_a12_one_ack_is_for_all_before_it(world: DssWorld) -> None:
    await published(world, 5)
    sub = await pushed(world.js, "d", ack_policy=AckPolicy.ALL)
    found = [await sub.next_msg(2) for _ in range(5)]
    await found[3].ack()
    assert await floor_of(world, "d", 4) == 4
    await found[1].ack()
    await found[4].ack()
    assert await floor_of(world, "d", 5) == 5


async def test_a13_the_floor_waits_for_what_is_not_acknowledged(world: DssWorld) -> None:
    await published(world, 4)
    sub = await pushed(world.js, "d")
    found = [await sub.next_msg(2) for _ in range(4)]
    for at in (0, 2, 3):
        await found[at].ack_sync()
    assert await floor_of(world, "d", 1) == 1
    await found[1].ack_sync()
    assert await floor_of(world, "d", 4) == 4


async def test_a16_what_fails_too_often_is_a_dead_letter(world: DssWorld) -> None:
    await published(world, 2)
    sub = await pushed(world.js, "d", max_deliver=2)
    first, second = await sub.next_msg(2), await sub.next_msg(2)
    # A03: what is terminated comes no more, and its reason is kept.
    await second.term("it is spoilt")
    await first.nak()
    again = await sub.next_msg(5)
    assert (again.data, again.metadata.num_delivered, again.headers) == (b"0", 2, {})
    assert (again.subject, again.metadata.sequence.stream) == ("orders.eu", 1)
    await again.nak()

    async def moved() -> bool:
        group = (await world.client.groups.describe("d")).group
        return (group.dead, group.retrying) == (2, 0)

    await until(moved)
    assert await nothing_comes(sub)


async def test_a_fetch_that_is_broken_off_gives_what_comes_again_later(world: DssWorld) -> None:
    await world.js.publish("orders.eu", b"0", headers={"a": "b"})
    sub = await pushed(world.js, "d", max_deliver=5)
    await (await sub.next_msg(2)).nak()
    session, sure = sub._pieces._session, iter([False, True])
    is_sure = session.is_sure
    session.is_sure = lambda: next(sure, True)  # type: ignore[method-assign]
    again = await sub.next_msg(5)  # made twice: the session was not sure at first
    session.is_sure = is_sure  # type: ignore[method-assign]
    assert (again.data, again.headers, again.metadata.num_delivered) == (b"0", {"a": "b"}, 2)
    await again.ack_sync()


async def test_c02_no_more_than_max_ack_pending_are_out(world: DssWorld) -> None:
    await published(world, 5)
    sub = await pushed(world.js, "d", max_ack_pending=2, ack_wait=30.0)
    first, _second = await sub.next_msg(2), await sub.next_msg(2)
    assert await nothing_comes(sub)
    await first.ack()
    assert (await sub.next_msg(2)).data == b"2"
    assert await nothing_comes(sub)


async def test_iteration_gives_each_message_once_and_ends_with_the_subscription(
    world: DssWorld,
) -> None:
    await published(world, 10)
    for durable, window in (("plain", None), ("window", 3)):
        sub = await pushed(world.js, durable, max_ack_pending=window)
        seen = []
        async for message in sub.messages:
            seen.append(message.data)
            await message.ack()
            if len(seen) == 10:
                await sub.unsubscribe()
        assert seen == [b"%d" % number for number in range(10)]


async def test_a_header_for_the_server_is_refused(world: DssWorld) -> None:
    for name in ("Nats-Msg-Id", "Nats-Expected-Last-Sequence", "nats-ttl"):
        with pytest.raises(NotOffered):
            await world.js.publish("orders.eu", b"", headers={name: "1"})
    with pytest.raises(NoMatchingStream):
        await world.js.publish("orders.eu", b"", stream="OTHER")
    with pytest.raises(NoMatchingStream):
        await world.js.publish("elsewhere", b"")


async def test_a_stream_is_a_topic_or_is_refused(world: DssWorld) -> None:
    await world.js.add_stream("AGED", ["aged"], max_age=3_600, storage="file", retention="limits")
    assert (await world.client.topics.describe("AGED")).retention_ms == 3_600_000
    for field in ({"storage": "memory"}, {"max_msgs": 5}, {"mirror": "OTHER"}):
        with pytest.raises(NotOffered):
            await world.js.add_stream("NEVER", ["never"], **field)


async def test_over_several_partitions_no_sequence_is_claimed(world: DssWorld) -> None:
    await world.js.add_stream("WIDE", ["wide.>"], partitions=4)
    acks = [await world.js.publish(f"wide.{number}", b"") for number in range(8)]
    assert {each.seq for each in acks} == {None}
    state = (await world.js.stream_info("WIDE")).state
    assert (state.messages, state.first_seq, state.last_seq) == (8, None, None)
    with pytest.raises(NotOffered):
        await world.js.subscribe("wide.>", deliver_policy="by_start_sequence", opt_start_seq=3)
    with pytest.raises(NotOffered):
        await world.js.subscribe("wide.>", ordered_consumer=True)
    found = await taken(await world.js.subscribe("wide.>", durable="w"), 8)
    assert len(found) == 8
    assert (await world.js.consumer_info("WIDE", "w")).ack_floor is None


@pytest.mark.parametrize(
    "config",
    [
        {"deliver_policy": "last"}, {"deliver_policy": "last_per_subject"}, {"headers_only": True},
        {"replay_policy": "original"}, {"rate_limit_bps": 1}, {"sample_freq": "1%"},
        {"num_replicas": 3}, {"backoff": [1.0]}, {"filter_subjects": ["orders.a", "orders.b"]},
    ],
    ids=str,
)  # fmt: skip
async def test_what_dss_cannot_do_is_refused_at_the_call(config: dict[str, Any]) -> None:
    from dss_client._connection import Connection
    from dss_client._endpoint import resolve

    nobody = Connection(resolve("unix:/nowhere"))

    async def no_session() -> object:
        raise AssertionError("nothing is asked")

    js = JetStream(nobody, no_session, None, "x")  # type: ignore[arg-type]
    with pytest.raises(NotOffered):
        await js.subscribe("" if "filter_subjects" in config else "orders.>", stream="S", **config)
    await nobody.close()


def test_columns_of_one_subject_and_of_several_are_translated() -> None:
    headers: list[tuple[tuple[str, bytes], ...]] = [(), (("a", b"b"),), ()]
    assert as_messages(["a/b"] * 3, headers) == (["a.b"] * 3, [None, {"a": "b"}, None])
    assert as_messages(["a/b", "a", "c/d"], [()] * 3) == (["a.b", "a", "c.d"], [None] * 3)
    assert as_messages([], []) == ([], [])


async def test_h06_without_heartbeats_nobody_listens(world: DssWorld) -> None:
    await pushed(world.js, "d")
    assert not [each for each in asyncio.all_tasks() if each.get_name() == "heartbeats of d"]
    await pushed(world.js, "e", idle_heartbeat=5.0)
    assert [each for each in asyncio.all_tasks() if each.get_name() == "heartbeats of e"]


async def test_v14_a_callback_that_is_none_is_refused(world: DssWorld) -> None:
    with pytest.raises(JetStreamMisuse):
        await world.js.subscribe("orders.>", cb="not a function")  # type: ignore[arg-type]
    assert await world.consumers() == set()


async def each_silence(sub: PushSubscription) -> float:
    """For how long the daemon was silent when the subscription looks the next time."""
    looked: asyncio.Future[float] = asyncio.get_running_loop().create_future()
    pieces, asked = sub._pieces, type(sub._pieces).silent_s

    def noted() -> float:
        del pieces.silent_s
        looked.set_result(asked(pieces))
        return looked.result()

    pieces.silent_s = noted  # type: ignore[method-assign]
    return await looked


async def test_h04_h05_a_silent_daemon_is_told_after_three_intervals(world: DssWorld) -> None:
    alarms: list[Exception] = []
    twice = asyncio.Event()

    async def error_cb(error: Exception) -> None:
        alarms.append(error)
        if len(alarms) == 2:
            twice.set()

    js = world.client.jetstream(error_cb=error_cb)
    await published(world, 1)
    sub = await pushed(js, "d", idle_heartbeat=0.2)
    await (await sub.next_msg(2)).ack_sync()
    heard = [await each_silence(sub) for _ in range(8)]
    # More than three intervals went by, and the daemon answered: nobody is alarmed.
    assert max(heard) < 0.6
    assert alarms == []
    sub._pieces.silent_s = lambda: 0.7  # type: ignore[method-assign]
    async with asyncio.timeout(5):
        await twice.wait()
    assert isinstance(alarms[0], dss_client.DssError)
    assert alarms[0].fields == {"consumer": "d", "silent_s": "0.7", "stream_seq": "1"}
