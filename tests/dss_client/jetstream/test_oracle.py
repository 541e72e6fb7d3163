"""One script of calls against the facade and against a real NATS server.

Keys are the rows of the checklist, with a word. What the two worlds answer is the same, but for
what `DIFFERS` explains.
"""

import asyncio
from typing import Any

import pytest

from dss_client.jetstream import ConsumerConfig
from support.jetstream_worlds import (
    STREAM,
    World,
    a_call,
    dss_world,
    nats_world,
    nothing_comes,
    outcome,
    taken,
    until,
)

Trace = dict[str, Any]

DIFFERS: dict[str, tuple[Any, Any]] = {
    # The creator leaves while another member shares the consumer: the ADR deletes it, and says so;
    # DSS does not, and the other member goes on.
    "U07 a member goes on when the creator leaves": (False, True),
}
"""By key, what NATS and what DSS answers."""


async def resolution(world: World, trace: Trace) -> None:
    trace["R01 one stream"] = await outcome(world.subscribe(a_call("orders.eu")))
    trace["R02 no stream"] = await outcome(world.subscribe(a_call("elsewhere.>")))
    trace["V02 a stream without a subject"] = await outcome(world.subscribe(a_call(stream=STREAM)))
    trace["R05 bind to nothing"] = await outcome(
        world.subscribe(a_call("orders.>", stream=STREAM, consumer="nobody"))
    )
    trace["R05 pull from nothing"] = await outcome(
        world.subscribe(a_call("orders.>", stream=STREAM, consumer="nobody", pull=True))
    )
    trace["C09 a stream that is not there"] = (
        await outcome(world.subscribe(a_call("orders.>", stream="NOWHERE")))
    ) != "subscribed"


async def existing(world: World, trace: Trace) -> None:
    """Checks against consumers that are there, each by several calls."""
    await world.make(ConsumerConfig(durable_name="pull", filter_subject="orders.>"))
    await world.make(
        ConsumerConfig(
            durable_name="beating", filter_subject="orders.>", deliver_subject="beating",
            deliver_group="beating", idle_heartbeat=1.0, flow_control=True,
        )
    )  # fmt: skip
    first = await world.subscribe(a_call("orders.>", durable="push"))
    trace["R07 a durable that is not there is made"] = "push" in await world.consumers()
    info = await world.info("push")
    assert info is not None
    trace["push_bound while it is subscribed to"] = info.push_bound
    trace["C01 what it is made of"] = (
        info.config.filter_subject, info.config.ack_policy, info.config.deliver_policy,
        info.config.ack_wait, info.config.max_deliver, info.config.durable_name,
        info.config.deliver_subject is not None, info.config.deliver_group,
    )  # fmt: skip
    stepped = ConsumerConfig(
        durable_name="steps", filter_subject="orders.>", max_deliver=3, backoff=[2.0, 4.0],
        ack_wait=9.0,
    )  # fmt: skip
    await world.make(stepped)
    steps = await world.info("steps")
    assert steps is not None
    trace["A15 a back-off has the ack wait"] = steps.config.ack_wait, steps.config.backoff
    member = await world.subscribe(a_call("orders.>", queue="workers"))
    calls = {
        "X01 another subject": a_call("orders.eu", durable="push"),
        "X02 no subject": a_call(stream=STREAM, durable="push"),
        "X04 pull from push": a_call("orders.>", durable="push", pull=True),
        "X05 push from pull": a_call("orders.>", durable="pull"),
        "X06 a queue on one without": a_call("orders.>", durable="push", queue="workers"),
        "X07 bound by its durable name": a_call("orders.>", durable="push"),
        "X07 bound by its name": a_call("orders.>", stream=STREAM, consumer="push"),
        "X08 one with a queue, alone": a_call("orders.>", durable="workers"),
        "X09 another queue": a_call("orders.>", durable="workers", queue="others"),
        "X10 the second member": a_call("orders.>", queue="workers"),
        "X11 flow control over a queue": a_call("orders.>", queue="beating"),
        "X12 another ack wait": a_call("orders.>", queue="workers", config={"ack_wait": 31.0}),
        "X14 the ack wait that it has": a_call(
            "orders.>", queue="workers", config={"ack_wait": 30.0}
        ),
        "X15 a wish that is off": a_call(
            "orders.>", queue="workers", config={"mem_storage": False}
        ),
        "X17 pull from what is there": a_call("orders.>", durable="pull", pull=True),
        "X17 pull, another subject": a_call("orders.eu", durable="pull", pull=True),
        "X17 pull, another max_waiting": a_call(
            "orders.>", durable="pull", pull=True, config={"max_waiting": 513}
        ),
        "X18 the subject before the kind": a_call("orders.eu", durable="push", pull=True),
    }
    for key, call in calls.items():
        trace[key] = await outcome(world.subscribe(call))
    await member.unsubscribe()
    await first.unsubscribe()
    trace["U01 a durable that it made goes"] = "push" not in await world.consumers()


async def messages(world: World, trace: Trace) -> None:
    """What comes, in which order, and what an answer to it does."""
    for number in range(8):
        await world.publish(f"orders.{'eu' if number % 2 else 'us'}", b"%d" % number)
    one = await world.subscribe(a_call("orders.>", durable="all"))
    trace["all of it, in order"] = await taken(one, 8)
    trace["nothing more"] = await nothing_comes(one)
    eu = await world.subscribe(a_call("orders.eu"))
    us = await world.subscribe(a_call("orders.us"))
    trace["C13 each of two gets its own"] = await taken(eu, 4), await taken(us, 4)
    new = await world.subscribe(a_call("orders.>", config={"deliver_policy": "new"}))
    trace["deliver new"] = await nothing_comes(new)
    third = a_call("orders.>", config={"deliver_policy": "by_start_sequence", "opt_start_seq": 7})
    trace["deliver by sequence"] = await taken(await world.subscribe(third), 2)
    await world.publish("orders.eu", b"late")
    trace["the late one"] = await taken(new, 1), await taken(one, 1)
    await refused(world, trace)


async def refused(world: World, trace: Trace) -> None:
    asks = await world.subscribe(a_call("orders.>", durable="asks", config={"ack_wait": 20.0}))
    first = await asks.next_msg(timeout=2)
    trace["metadata"] = first.metadata.sequence.stream, first.metadata.num_delivered, first.subject
    await first.nak()
    rest = [await asks.next_msg(timeout=2) for _ in range(9)]
    again = next(each for each in rest if each.data == first.data)
    trace["A02 a nak comes again at once"] = again.metadata.num_delivered
    for each in rest:
        if each is again:
            await each.term()
        else:
            await each.in_progress()
            await each.ack()
    trace["A14 a terminated one comes no more"] = await nothing_comes(asks)
    told: list[tuple[int | None, int | None, int | None]] = []

    async def all_acknowledged() -> bool:
        info = await world.info("asks")
        assert info is not None
        assert info.ack_floor is not None
        told.append((info.ack_floor.stream_seq, info.num_ack_pending, info.num_pending))
        return info.ack_floor.stream_seq == 9

    await until(all_acknowledged)
    trace["A13 the floor, and what is pending"] = told[-1]


async def pulled(world: World, trace: Trace) -> None:
    pull = await world.subscribe(a_call("orders.>", durable="pulled", pull=True))
    found = await pull.fetch(3, timeout=2)
    trace["a batch"] = [each.data for each in found]
    more = await pull.fetch(100, timeout=2)
    trace["P11 what there is of a larger one"] = [each.data for each in more]
    for each in [*found, *more]:
        await each.ack()
    trace["P02 nothing in time"] = await outcome(pull.fetch(1, timeout=0.3))


async def race(world: World, trace: Trace) -> None:
    """A dozen creators of one queue, and of one durable, at once."""
    queue = [world.subscribe(a_call("orders.>", queue="dozen")) for _ in range(12)]
    trace["C12 a dozen join one queue"] = await asyncio.gather(*map(outcome, queue))
    trace["C12 there is one"] = {"dozen"} & await world.consumers()
    alone = [world.subscribe(a_call("orders.>", durable="single")) for _ in range(12)]
    verdicts = sorted(await asyncio.gather(*map(outcome, alone)))
    trace["C07 one of a dozen is bound"] = verdicts


async def leaving(world: World, trace: Trace) -> None:
    creator = await world.subscribe(a_call("orders.>", queue="shared"))
    member = await world.subscribe(a_call("orders.>", queue="shared"))
    await creator.unsubscribe()
    trace["U07 a member goes on when the creator leaves"] = "shared" in await world.consumers()
    await member.unsubscribe()
    await world.make(ConsumerConfig(durable_name="theirs", deliver_subject="theirs"))
    bound = await world.subscribe(a_call(stream=STREAM, consumer="theirs"))
    await bound.unsubscribe()
    trace["U03 what was there stays"] = "theirs" in await world.consumers()
    fleeting = await world.subscribe(a_call("orders.>"))
    before = await world.consumers()
    await fleeting.unsubscribe()
    trace["U01 an ephemeral one goes"] = len(before - await world.consumers())


async def script(world: World) -> Trace:
    trace: Trace = {}
    for part in (resolution, existing, messages, pulled, race, leaving):
        async with asyncio.timeout(60):
            await part(world, trace)
    return trace


@pytest.mark.slow("waits for what does not come, on a real NATS server and on a real daemon")
async def test_a_script_of_calls_does_the_same_on_a_nats_server() -> None:
    async with nats_world() as nats, dss_world() as dss:
        theirs, ours = await asyncio.gather(script(nats), script(dss))
    assert theirs.keys() == ours.keys()
    differs = {key: (theirs[key], ours[key]) for key in theirs if theirs[key] != ours[key]}
    assert differs == DIFFERS
