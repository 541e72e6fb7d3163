"""How subscriptions end and what goes with them (rows U of the checklist), and who may have one."""

import asyncio
from collections.abc import AsyncIterator

import pytest

import dss_client
from dss_client.jetstream import ConsumerConfig, PushSubscription
from dss_core.errors import (
    ConfigDiffers,
    ConsumerIsBound,
    ConsumerNotFound,
    DssError,
    SubscriptionOver,
)
from support.dssctl_call import call_dssctl
from support.jetstream_worlds import STREAM, DssWorld, here, outcome, taken, until


@pytest.fixture
async def other(world: DssWorld) -> AsyncIterator[dss_client.Client]:
    """Another program."""
    async with dss_client.connect("other", endpoint=world.endpoint) as client:
        yield client


async def test_u01_u09_what_it_made_goes_and_an_error_of_that_is_told(world: DssWorld) -> None:
    sub = await world.js.subscribe("orders.>", durable="d")
    await sub.unsubscribe()
    assert "d" not in await world.consumers()

    gone = await world.js.subscribe("orders.>", durable="e")
    assert isinstance(gone, PushSubscription)

    async def fail(_: object) -> bool:
        raise ConsumerNotFound(consumer="e", stream=STREAM)

    gone._consumers.discard = fail  # type: ignore[method-assign,assignment]
    with pytest.raises(ConsumerNotFound):
        await gone.unsubscribe()
    del gone._consumers.discard
    assert gone.is_over


async def test_u02_a_drain_handles_what_came_and_then_deletes(world: DssWorld) -> None:
    seen: list[bytes] = []
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def callback(message: dss_client.jetstream.Msg) -> None:
        begun.set()
        await go_on.wait()
        seen.append(message.data)

    for number in range(5):
        await world.publish("orders.eu", b"%d" % number)
    sub = await world.js.subscribe("orders.>", durable="d", cb=callback)
    assert isinstance(sub, PushSubscription)
    await begun.wait()
    await here(sub, 4)
    draining = asyncio.create_task(sub.drain())
    await asyncio.sleep(0)
    await world.publish("orders.eu", b"late")
    assert "d" in await world.consumers()
    go_on.set()
    await draining
    assert seen == [b"0", b"1", b"2", b"3", b"4"]
    assert "d" not in await world.consumers()


async def test_u02_a_drain_with_messages_on_their_way_loses_none_and_doubles_none(
    world: DssWorld, other: dss_client.Client
) -> None:
    """Those that had not come stay with the consumer, for whoever subscribes next."""
    await world.js.add_consumer(
        STREAM, ConsumerConfig(durable_name="d", filter_subject="orders.>", deliver_subject="x")
    )
    seen: list[bytes] = []

    async def callback(message: dss_client.jetstream.Msg) -> None:
        seen.append(message.data)
        await asyncio.sleep(0)

    sub = await world.js.subscribe("orders.>", durable="d", cb=callback)
    assert isinstance(sub, PushSubscription)
    waiting = [await world.js.publish_async("orders.eu", b"%d" % number) for number in range(400)]
    await waiting[40]
    await sub.drain()
    for each in waiting:
        await each
    rest = await other.jetstream().subscribe("orders.>", durable="d")
    before = len(seen)
    seen += await taken(rest, 400 - before, timeout=5)
    assert seen == [b"%d" % number for number in range(400)]


async def test_u03_u06_what_was_there_before_is_never_deleted(world: DssWorld) -> None:
    await world.js.add_consumer(
        STREAM,
        ConsumerConfig(durable_name="d", filter_subject="orders.>", deliver_subject="x"),
    )
    for given in ({"durable": "d"}, {"consumer": "d", "stream": STREAM}):
        sub = await world.js.subscribe("orders.>", **given)  # type: ignore[arg-type]
        await sub.unsubscribe()
        assert "d" in await world.consumers()


async def test_u04_the_end_of_a_client_deletes_nothing_and_the_drain_of_all_does(
    world: DssWorld, other: dss_client.Client
) -> None:
    async with dss_client.connect("third", endpoint=world.endpoint) as third:
        await third.jetstream().subscribe("orders.>", durable="kept")
    assert "kept" in await world.consumers()
    js = other.jetstream()
    fleeting = await js.subscribe("orders.>", cb=_nothing)
    assert isinstance(fleeting, PushSubscription)
    assert fleeting.consumer in await world.consumers()
    await js.drain()
    assert fleeting.consumer not in await world.consumers()


async def _nothing(_: object) -> None:
    pass


async def test_u04_a_program_that_is_told_to_end_leaves_what_it_made(world: DssWorld) -> None:
    sub = await world.js.subscribe("orders.>", durable="d", cb=_nothing)
    assert isinstance(sub, PushSubscription)
    sub._pieces.end_taking()  # as a signal does
    served = sub._served
    assert served is not None
    await served
    assert sub.is_over
    assert "d" in await world.consumers()


async def test_u05_an_ephemeral_consumer_is_made_to_go_by_itself(world: DssWorld) -> None:
    for threshold, unused_ms in ((None, 5_000), (90.0, 90_000), (0.1, 1_000)):
        sub = await world.js.subscribe("orders.>", inactive_threshold=threshold)
        assert isinstance(sub, PushSubscription)
        assert (await world.client.groups.describe(sub.consumer)).group.unused_ms == unused_ms
        await sub.unsubscribe()
    durable = await world.js.subscribe("orders.>", durable="d")
    fleeting = await world.js.subscribe("orders.>")
    assert isinstance(fleeting, PushSubscription)
    told = await asyncio.to_thread(
        call_dssctl, "--endpoint", world.endpoint, "groups", "describe", fleeting.consumer
    )
    assert b"goes 5s after its last client" in told.stdout
    listed = await asyncio.to_thread(
        call_dssctl, "--endpoint", world.endpoint, "groups", "ls", "--filter", "unused_ms>0s"
    )
    assert [each.split()[0].decode() for each in listed.stdout.splitlines()[1:]] == [
        fleeting.consumer
    ]
    assert (await world.client.groups.describe("d")).group.unused_ms == 0
    await durable.unsubscribe()


async def test_u05_what_a_lost_program_leaves_behind_goes(world: DssWorld) -> None:
    async with dss_client.connect("lost", endpoint=world.endpoint) as lost:
        sub = await lost.jetstream().subscribe("orders.>", inactive_threshold=1.0)
        assert isinstance(sub, PushSubscription)
        name = sub.consumer
    assert name in await world.consumers()
    await until(lambda: _is_gone(world, name))


async def _is_gone(world: DssWorld, name: str) -> bool:
    return name not in await world.consumers()


async def test_u07_a_member_goes_on_when_the_creator_leaves(
    world: DssWorld, other: dss_client.Client
) -> None:
    creator = await world.js.subscribe("orders.>", "shared")
    member = await other.jetstream().subscribe("orders.>", "shared")
    await creator.unsubscribe()
    await world.publish("orders.eu", b"one")
    assert await taken(member, 1) == [b"one"]
    await member.unsubscribe()
    # It did not make it, so it does not delete it either.
    assert "shared" in await world.consumers()


async def test_u08_a_second_end_is_refused(world: DssWorld) -> None:
    push = await world.js.subscribe("orders.>")
    pull = await world.js.pull_subscribe("orders.>", "p")
    ordered = await world.js.subscribe("orders.>", ordered_consumer=True)
    for sub in (push, pull, ordered):
        await sub.unsubscribe()
        with pytest.raises(SubscriptionOver):
            await sub.unsubscribe()
    assert isinstance(push, PushSubscription)
    with pytest.raises(SubscriptionOver):
        await push.next_msg()
    with pytest.raises(SubscriptionOver):
        await pull.fetch()


async def test_u11_no_task_is_left_behind(world: DssWorld) -> None:
    await world.js.subscribe("orders.>")  # the session's own tasks are there by now
    before = asyncio.all_tasks()
    subs = [
        await world.js.subscribe("orders.>", cb=_nothing, idle_heartbeat=0.2),
        await world.js.subscribe("orders.>", ordered_consumer=True, cb=_nothing),
        await world.js.subscribe("orders.>", idle_heartbeat=0.2),
    ]
    for sub in subs:
        await sub.unsubscribe()
    for each in asyncio.all_tasks() - before:
        await asyncio.wait([each], timeout=5)
        assert each.done(), each


async def test_x07_who_has_a_consumer_for_one_keeps_it_and_lets_go_of_it(
    world: DssWorld, other: dss_client.Client
) -> None:
    await world.js.add_consumer(
        STREAM,
        ConsumerConfig(durable_name="d", filter_subject="orders.>", deliver_subject="x"),
    )
    js = other.jetstream()
    mine = await world.js.subscribe("orders.>", durable="d")
    assert (await world.js.consumer_info(STREAM, "d")).push_bound
    for each in (world.js, js):
        with pytest.raises(ConsumerIsBound):
            await each.subscribe("orders.>", durable="d")
    await mine.unsubscribe()
    assert not (await world.js.consumer_info(STREAM, "d")).push_bound
    theirs = await js.subscribe("orders.>", durable="d")
    await world.publish("orders.eu", b"one")
    assert await taken(theirs, 1) == [b"one"]
    await theirs.unsubscribe()


async def test_c12_of_a_dozen_programs_one_makes_a_consumer_and_one_is_bound(
    world: DssWorld,
) -> None:
    clients = [dss_client.connect(f"c{number}", endpoint=world.endpoint) for number in range(12)]
    async with asyncio.TaskGroup() as tasks:
        for each in clients:
            tasks.create_task(each.__aenter__())
    try:
        all_js = [each.jetstream() for each in clients]
        for number in range(3):
            name = f"single{number}"
            verdicts = await asyncio.gather(
                *(outcome(js.subscribe("orders.>", durable=name)) for js in all_js)
            )
            assert sorted(verdicts) == ["DSS2207"] * 11 + ["subscribed"]
        queue = await asyncio.gather(*(js.subscribe("orders.>", "dozen") for js in all_js))
        assert [each.name for each in await world.client.groups.list(filter="name=dozen")] == [
            "dozen"
        ]
        await world.publish("orders.eu", b"one")
        found = await asyncio.gather(*(outcome(each.next_msg(1.0)) for each in queue))
        assert sorted(found) == ["subscribed"] + ["timeout"] * 11
    finally:
        for each in clients:
            await each.__aexit__(None, None, None)


async def test_two_that_make_one_name_with_different_subjects_are_told_apart(
    world: DssWorld, other: dss_client.Client
) -> None:
    verdicts = await asyncio.gather(
        outcome(world.js.pull_subscribe("orders.eu", "both")),
        outcome(other.jetstream().pull_subscribe("orders.us", "both")),
    )
    assert sorted(verdicts) == ["DSS2203", "subscribed"]
    assert len(await world.client.groups.list(filter="name=both")) == 1


async def test_r09_binding_without_a_look_makes_no_group(world: DssWorld) -> None:
    with pytest.raises(ConsumerNotFound):
        await world.js.pull_subscribe("orders.>", stream=STREAM, consumer="no", skip_lookup=True)
    assert await world.consumers() == set()


async def test_a_group_of_dss_is_a_consumer_to_share(world: DssWorld) -> None:
    await world.client.groups.create("$share/native/orders/+/#", start="earliest", max_deliver=3)
    await world.publish("orders.eu", b"one")
    with pytest.raises(DssError) as alone:
        await world.js.subscribe("orders.>", durable="native")
    assert alone.value.code == "DSS2208"
    push = await world.js.subscribe("orders.>", "native")
    message = await push.next_msg(5)
    await message.term("spoilt")
    pull = await world.js.pull_subscribe("orders.>", "native")
    for sub in (push, pull):
        await sub.unsubscribe()
    assert (await world.client.groups.describe("native")).group.max_deliver == 3


async def test_add_consumer_finds_what_is_as_it_is_wanted_and_refuses_another(
    world: DssWorld,
) -> None:
    wanted = ConsumerConfig(durable_name="d", filter_subject="orders.>", ack_wait=9.0)
    made = await world.js.add_consumer(STREAM, wanted)
    assert await world.js.add_consumer(STREAM, wanted) == made
    for other in ({"ack_wait": 10.0}, {"filter_subject": "orders.eu"}, {"deliver_subject": "x"}):
        with pytest.raises(ConfigDiffers):
            await world.js.add_consumer(STREAM, wanted, **other)
    info = await world.js.consumer_info(STREAM, "d")
    assert (info.num_pending, info.num_ack_pending, info.config.ack_wait) == (0, 0, 9.0)
    assert await world.js.delete_consumer(STREAM, "d")
    with pytest.raises(ConsumerNotFound):
        await world.js.consumer_info(STREAM, "d")
