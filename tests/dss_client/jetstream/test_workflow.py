"""The workflow without a server: what it asks, in which order, and what becomes of each answer."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from dss_client.jetstream.calls import SubscribeCall
from dss_client.jetstream.config import ConsumerConfig, ConsumerInfo, differences, with_defaults
from dss_client.jetstream.workflow import (
    Attach,
    Bound,
    Create,
    Discard,
    Listen,
    LookUp,
    carried_out,
    workflow,
)
from dss_core.errors import (
    ConfigDiffers,
    ConsumerHasQueue,
    ConsumerIsBound,
    ConsumerNotFound,
    DssError,
    NoMatchingStream,
    PermissionDenied,
    SubjectMismatch,
    TimedOut,
    Unreachable,
)
from support.jetstream_worlds import a_call

EPOCH = datetime.fromtimestamp(0, UTC)


def a_consumer(**config: Any) -> ConsumerInfo:  # noqa: ANN401
    """A push consumer of `orders.>`."""
    bound = config.pop("push_bound", False)
    made = {"name": "c", "durable_name": "c", "filter_subject": "orders.>"} | config
    made.setdefault("deliver_subject", "there")
    return ConsumerInfo("c", "s", with_defaults(ConsumerConfig(**made)), EPOCH, push_bound=bound)


@dataclass
class PlayedPort:
    """Answers as a test says, and notes what it was asked."""

    streams: tuple[str, ...] = ("s",)
    found: list[ConsumerInfo | Exception | None] = field(default_factory=list)
    makes: ConsumerInfo | BaseException | Callable[[Create], ConsumerInfo] | None = None
    bound: bool | BaseException = True
    asked: list[str] = field(default_factory=list)
    created: list[ConsumerConfig] = field(default_factory=list)

    async def find_streams(self, subject: str) -> tuple[str, ...]:
        self.asked.append("find")
        return self.streams

    async def look_up(self, request: LookUp) -> ConsumerInfo | None:
        self.asked.append("look up")
        answer = self.found.pop(0) if self.found else None
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def listen(self, request: Listen) -> None:
        self.asked.append("listen")

    async def create(self, request: Create) -> ConsumerInfo | None:
        self.asked.append("create")
        self.created.append(request.config)
        if isinstance(self.makes, BaseException):
            raise self.makes
        return self.makes(request) if callable(self.makes) else self.makes

    async def attach(self, request: Attach) -> bool:
        self.asked.append("attach")
        if isinstance(self.bound, BaseException):
            raise self.bound
        return self.bound

    async def withdraw(self) -> None:
        self.asked.append("withdraw")

    async def discard(self, request: Discard) -> None:
        self.asked.append("discard")


def made(request: Create) -> ConsumerInfo:
    """As it was asked for."""
    config = with_defaults(request.config)
    return ConsumerInfo(config.name or "", request.stream, config, EPOCH, push_bound=False)


async def run(call: SubscribeCall, port: PlayedPort) -> Bound:
    return await carried_out(workflow(call), port)


async def refused(call: SubscribeCall, port: PlayedPort) -> DssError:
    with pytest.raises(DssError) as told:
        await run(call, port)
    return told.value


@pytest.mark.parametrize("streams", [(), ("s", "t")])
async def test_r02_none_and_several_streams_are_refused(streams: tuple[str, ...]) -> None:
    error = await refused(a_call("orders.>"), PlayedPort(streams))
    assert isinstance(error, NoMatchingStream)


async def test_r03_a_daemon_that_does_not_answer_is_told_as_it_is() -> None:
    error = Unreachable(endpoint="x", reason="y")
    assert await refused(a_call("a", durable="c"), PlayedPort(found=[error])) is error


async def test_r04_a_consumer_that_is_there_is_bound_and_never_made() -> None:
    port = PlayedPort(found=[a_consumer()])
    verdict = await run(a_call("orders.>", durable="c"), port)
    assert (verdict.created, port.asked) == (False, ["find", "look up", "attach"])


@pytest.mark.parametrize("pull", [False, True])
async def test_r05_binding_to_nothing_is_refused(pull: bool) -> None:
    port = PlayedPort()
    error = await refused(a_call(stream="s", consumer="c", pull=pull), port)
    assert isinstance(error, ConsumerNotFound)
    assert port.asked == ["look up"]


@pytest.mark.parametrize(
    "failure",
    [PermissionDenied(principal="p", what="w", permission="q", endpoint="e"), TimedOut()],
    ids=["denied", "late"],
)
async def test_r06_who_pulls_goes_on_where_the_consumer_cannot_be_looked_up(
    failure: DssError,
) -> None:
    port = PlayedPort(found=[failure])
    verdict = await run(a_call("orders.>", stream="s", consumer="c", pull=True), port)
    assert (verdict.created, verdict.info.name) == (False, "c")
    assert port.asked == ["look up", "attach"]
    assert await refused(a_call(stream="s", consumer="c"), PlayedPort(found=[failure])) is failure


async def test_r08_a_lookup_that_fails_makes_nothing() -> None:
    port = PlayedPort(found=[TimedOut()])
    assert isinstance(await refused(a_call("a", durable="c"), port), TimedOut)
    assert port.asked == ["find", "look up"]


async def test_r09_without_a_look_a_durable_is_made_and_a_bound_one_is_not() -> None:
    port = PlayedPort(makes=made)
    verdict = await run(a_call("orders.>", durable="c", skip_lookup=True), port)
    assert (verdict.created, port.asked) == (True, ["find", "listen", "create", "attach"])
    port = PlayedPort()
    verdict = await run(a_call("orders.>", stream="s", consumer="c", skip_lookup=True), port)
    assert (verdict.created, port.asked) == (False, ["attach"])
    # It may not overwrite what is there, as it may in NATS: it is a race like any other.
    port = PlayedPort(found=[a_consumer()])
    error = await refused(a_call("orders.>", durable="c", skip_lookup=True), port)
    assert isinstance(error, ConsumerIsBound)


async def test_r10_a_consumer_without_a_name_has_the_fresh_one() -> None:
    port = PlayedPort(makes=made)
    call = a_call("orders.>")
    verdict = await run(call, port)
    assert verdict.info.name == call.fresh_name
    assert port.created[0].durable_name is None


@pytest.mark.parametrize(
    ("asked", "fits"),
    [(["a", "b"], True), (["b", "a"], True), (["a"], False), (["a", "b", "c"], False)],
)
async def test_x03_lists_of_filters_are_compared_in_any_order(asked: list[str], fits: bool) -> None:
    there = a_consumer(filter_subject=None, filter_subjects=["a", "b"])
    call = a_call(stream="s", durable="c", config={"filter_subjects": asked})
    if fits:
        await run(call, PlayedPort(found=[there]))
    else:
        assert isinstance(await refused(call, PlayedPort(found=[there])), SubjectMismatch)
    one = a_call("b", stream="s", durable="c")
    assert not (await run(one, PlayedPort(found=[there]))).created


def test_x13_what_is_not_said_never_differs() -> None:
    full = replace(a_consumer().config, description="d", max_ack_pending=7, backoff=[1.0])
    assert list(differences(ConsumerConfig(), full)) == []


DIFFERENT: dict[str, tuple[Any, Any]] = {
    "durable_name": ("d", "c"), "description": ("x", None), "deliver_policy": ("new", "all"),
    "opt_start_seq": (3, None), "opt_start_time": (EPOCH, None), "ack_policy": ("all", "explicit"),
    "ack_wait": (31.0, 30.0), "max_deliver": (3, -1), "replay_policy": ("original", "instant"),
    "rate_limit_bps": (9, None), "sample_freq": ("50%", None), "max_waiting": (513, 512),
    "max_ack_pending": (9, None), "flow_control": (True, None), "idle_heartbeat": (1.0, None),
    "num_replicas": (3, 1), "mem_storage": (True, None), "headers_only": (True, None),
    "backoff": ([1.0], None), "inactive_threshold": (9.0, None), "max_batch": (9, None),
    "max_expires": (9.0, None), "max_bytes": (9, None), "metadata": ({"a": "b"}, None),
}  # fmt: skip


@pytest.mark.parametrize("name", DIFFERENT)
def test_x16_each_field_is_compared_and_its_own_value_fits(name: str) -> None:
    wanted, has = DIFFERENT[name]
    there = ConsumerConfig(**{name: has})
    assert [each.split()[0] for each in differences(ConsumerConfig(**{name: wanted}), there)] == [
        name
    ]
    same = ConsumerConfig(**{name: wanted})
    assert list(differences(same, same)) == []


async def test_x14_x15_defaults_and_wishes_that_are_off_fit() -> None:
    said = {
        "ack_wait": 30.0, "max_deliver": -1, "max_ack_pending": 1_000, "num_replicas": 1,
        "deliver_policy": "all", "ack_policy": "explicit", "replay_policy": "instant",
        "flow_control": False, "mem_storage": False,
    }  # fmt: skip
    await run(a_call("orders.>", durable="c", config=said), PlayedPort(found=[a_consumer()]))
    on = a_call("orders.>", durable="c", config={"flow_control": True, "idle_heartbeat": 1.0})
    error = await refused(on, PlayedPort(found=[a_consumer(idle_heartbeat=1.0)]))
    assert isinstance(error, ConfigDiffers)
    there = a_consumer(idle_heartbeat=1.0, flow_control=True)
    await run(
        a_call("orders.>", durable="c", config={"flow_control": False}), PlayedPort(found=[there])
    )


async def test_c01_what_is_made_is_filled_in() -> None:
    port = PlayedPort(makes=made)
    call = a_call("orders.>", queue="q")
    await run(call, port)
    config = port.created[0]
    assert (config.name, config.durable_name, config.deliver_group) == ("q", "q", "q")
    assert (config.filter_subject, config.deliver_subject) == ("orders.>", call.fresh_inbox)
    await run(a_call("orders.>", durable="p", pull=True), port)
    assert port.created[1].deliver_subject is None


async def test_c03_who_subscribes_listens_before_the_consumer_is_made() -> None:
    port = PlayedPort(makes=made)
    await run(a_call("orders.>", durable="c"), port)
    assert port.asked.index("listen") < port.asked.index("create")
    port = PlayedPort(makes=made)
    await run(a_call("orders.>", durable="c", pull=True), port)
    assert "listen" not in port.asked


async def test_c05_what_it_made_is_told_as_made() -> None:
    verdict = await run(a_call("orders.>", durable="c"), PlayedPort(makes=made))
    assert (verdict.created, verdict.info.name) == (True, "c")


@pytest.mark.parametrize("bound", [False, True])
async def test_c07_who_loses_a_race_for_a_push_consumer_is_refused(bound: bool) -> None:
    # C06: the answer that there is one is no error, but the way into this.
    port = PlayedPort(found=[None, a_consumer(push_bound=bound)])
    error = await refused(a_call("orders.>", durable="c"), port)
    assert isinstance(error, ConsumerIsBound)
    assert port.asked[-3:] == ["create", "withdraw", "look up"]


async def test_c07_who_loses_a_race_for_a_queue_joins_it() -> None:
    there = a_consumer(deliver_group="c", push_bound=True)
    port = PlayedPort(found=[None, there])
    verdict = await run(a_call("orders.>", queue="c"), port)
    assert (verdict.created, port.asked[-3:]) == (False, ["withdraw", "look up", "attach"])
    # and is checked as if it had found it
    other = PlayedPort(found=[None, a_consumer(deliver_group="d")])
    error = await refused(a_call("orders.>", durable="c"), other)
    assert isinstance(error, ConsumerHasQueue)


async def test_c07_who_loses_a_race_to_pull_goes_on() -> None:
    port = PlayedPort(found=[None, a_consumer(deliver_subject=None)])
    verdict = await run(a_call("orders.>", durable="c", pull=True), port)
    assert not verdict.created


async def test_c09_an_error_of_the_creation_leaves_nothing_open() -> None:
    error = TimedOut()
    port = PlayedPort(makes=error)
    assert await refused(a_call("orders.>", durable="c"), port) is error
    assert port.asked[-2:] == ["create", "withdraw"]
    assert "discard" not in port.asked


async def test_c14_a_call_that_is_cancelled_leaves_nothing_behind() -> None:
    for port in (
        PlayedPort(makes=asyncio.CancelledError()),
        PlayedPort(makes=made, bound=asyncio.CancelledError()),
    ):
        with pytest.raises(asyncio.CancelledError):
            await run(a_call("orders.>", durable="c"), port)
        assert port.asked[-1] in ("withdraw", "discard")
        assert ("discard" in port.asked) == ("attach" in port.asked)


async def test_who_made_a_consumer_that_another_bound_first_is_refused_and_leaves_it() -> None:
    port = PlayedPort(makes=made, bound=False)
    assert isinstance(await refused(a_call("orders.>", durable="c"), port), ConsumerIsBound)
    assert "discard" not in port.asked
