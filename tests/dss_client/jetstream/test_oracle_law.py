"""Consumers and calls drawn at random: the facade and a real NATS server answer alike."""

import asyncio
from random import Random
from typing import Any

import pytest

from dss_client.jetstream import ConsumerConfig
from dss_client.jetstream.calls import SubscribeCall
from support.jetstream_worlds import (
    STREAM,
    World,
    a_call,
    dss_world,
    nats_world,
    outcome,
)
from support.proof_share import share

CASES = share(40, 1_000)
SUBJECTS = ("orders.>", "orders.eu", "orders.*", "")

FIELDS: dict[str, tuple[Any, ...]] = {
    "ack_wait": (20.0, 30.0),
    "max_deliver": (-1, 3),
    "description": ("one", "two"),
    "max_ack_pending": (7, 1_000),
    "inactive_threshold": (60.0, 90.0),
    "deliver_policy": ("all", "new"),
    "metadata": ({"a": "b"}, {"a": "c"}),
    "mem_storage": (False, False),
    "num_replicas": (1, 1),
}
OF_PUSH: dict[str, tuple[Any, ...]] = {
    "idle_heartbeat": (1.0, 2.0),
    "ack_policy": ("explicit", "all"),
}
OF_PULL: dict[str, tuple[Any, ...]] = {
    "max_waiting": (512, 9),
    "max_batch": (3, 4),
    "max_bytes": (3_000, 4_000),
    "ack_policy": ("explicit", "explicit"),
}


def some_fields(chance: Random, *, pull: bool, likely: float) -> dict[str, Any]:
    known = FIELDS | (OF_PULL if pull else OF_PUSH)
    return {
        name: chance.choice(values) for name, values in known.items() if chance.random() < likely
    }


def existing(chance: Random, name: str) -> ConsumerConfig | None:
    """What is there before, if anything is."""
    kind = chance.choice(["nothing", "pull", "push", "push", "queue", "queue"])
    if kind == "nothing":
        return None
    said = some_fields(chance, pull=kind == "pull", likely=0.25)
    if kind != "pull":
        said["deliver_subject"] = f"to.{name}"
    if kind == "queue":
        said["deliver_group"] = chance.choice([name, "other"])
    if said.get("idle_heartbeat") and chance.random() < 0.5:
        said["flow_control"] = True
    if subject := chance.choice(SUBJECTS):
        said["filter_subject"] = subject
    return ConsumerConfig(durable_name=name, **said)


def call(chance: Random, name: str) -> SubscribeCall:
    """Who comes then."""
    given: dict[str, Any] = {}
    pull = chance.random() < 0.3
    subject = chance.choice(SUBJECTS)
    if not subject or chance.random() < 0.3:
        given["stream"] = STREAM
    kind = chance.choice(["durable", "durable", "bind", "queue", "both"])
    if kind == "bind":
        given |= {"consumer": name, "stream": STREAM}
    if kind in ("durable", "both"):
        given["durable"] = name
    if kind in ("queue", "both") or chance.random() < 0.15:
        given["queue"] = chance.choice([name, name, "other"])
    config = some_fields(chance, pull=pull, likely=0.1)
    return a_call(subject, pull=pull, config=config, **given)


async def answers(world: World, cases: int) -> list[tuple[str, ...]]:
    """What each case ends with: the first who comes, a second beside it, and what is left."""
    told = []
    for number in range(cases):
        chance = Random(number)
        name = f"c{number}"
        there = existing(chance, name)
        made = "nothing" if there is None else await outcome(world.make(there))
        first, second = call(chance, name), call(chance, name)
        subscribed = [await attempt(world, each) for each in (first, second)]
        left = sorted({name, "other"} & await world.consumers())
        for sub, _ in subscribed:
            if sub is not None:
                await sub.unsubscribe()
        told.append((made, *(code for _, code in subscribed), ",".join(left)))
        for each in {name, "other"} & await world.consumers():
            await world.forget(each)
    return told


async def attempt(world: World, asked: SubscribeCall) -> tuple[Any, str]:
    subscriptions: list[Any] = []

    async def subscribe() -> Any:  # noqa: ANN401 - of either world
        subscriptions.append(await world.subscribe(asked))
        return subscriptions[0]

    code = await outcome(subscribe())
    return (subscriptions[0] if subscriptions else None), code


@pytest.mark.slow("some 200 subscriptions are made and left on either side, one after the other")
async def test_whatever_is_there_and_whoever_comes_both_answer_alike() -> None:
    async with nats_world() as nats, dss_world() as dss:
        theirs, ours = await asyncio.gather(answers(nats, CASES), answers(dss, CASES))
    differs = {n: pair for n, pair in enumerate(zip(theirs, ours, strict=True)) if len({*pair}) > 1}
    assert differs == {}
    ends = {code for each in theirs for code in each}
    # Nothing is learned from cases that all end alike.
    assert len(ends & {"subscribed", *(f"DSS22{n:02}" for n in range(1, 16))}) > 8
