"""Every number of the wire at its extremes: the daemon answers, with a code where it refuses.

What is accepted must do no harm either: the daemon serves on and stops cleanly at the end.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc.aio
import pytest
import pytest_asyncio

from dss_api.v1 import daemon_pb2, groups_pb2, log_pb2, topics_pb2, types_pb2
from dss_api.v1 import sessions_pb2 as wire
from dss_core.build import build_frame
from dss_core.columns import Columns
from support.daemon_process import running, short_directory
from support.raw_stubs import Stubs, condition, condition_of, connected, produced

pytestmark = pytest.mark.asyncio(loop_scope="module")  # one daemon for all

U64 = (1 << 63, (1 << 64) - 1)
I64 = (-(1 << 63), (1 << 63) - 1)
U32 = ((1 << 31), (1 << 32) - 1)

PATIENCE_S = 60.0
FINE = ""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stubs() -> AsyncIterator[Stubs]:
    with short_directory() as directory:
        async with running("--data-dir", str(directory)) as daemon:
            async with connected(daemon.endpoint) as made:
                await made.topics.Create(topics_pb2.CreateTopicRequest(name="t", partitions=1))
                await publish(made)
                yield made
                await made.daemon.Status(daemon_pb2.DaemonStatusRequest())
            assert await daemon.stop() == 0
            assert "Traceback" not in daemon.said


async def publish(stubs: Stubs, **fields: Any) -> None:  # noqa: ANN401 - of a record
    record = types_pb2.Record(payload=b"x", **fields)
    await stubs.log.Publish(log_pb2.PublishRequest(topic="t", records=[record]))


def name() -> str:
    return "n" + os.urandom(6).hex()


def create_topic(**fields: Any) -> Any:  # noqa: ANN401 - any field, a call
    request = topics_pb2.CreateTopicRequest(**{"name": name(), "partitions": 1, **fields})
    return lambda stubs: stubs.topics.Create(request)


def create_group(**fields: Any) -> Any:  # noqa: ANN401 - any field, a call
    request = groups_pb2.CreateGroupRequest(filter=f"$share/{name()}/t/#", **fields)
    return lambda stubs: stubs.groups.Create(request)


def read(**fields: Any) -> Any:  # noqa: ANN401 - any field, a call
    request = log_pb2.ReadRequest(stream="t/0/0", **fields)
    return lambda stubs: drained(stubs.log.Read(request))


async def drained(call: Any) -> None:  # noqa: ANN401 - of any replies
    async for _ in call:
        pass


def start(**fields: Any) -> types_pb2.Start:  # noqa: ANN401 - any field
    return types_pb2.Start(**fields)


UNARY: list[tuple[str, Callable[[int], Any], tuple[int, ...], str]] = [
    ("retention_ms", lambda n: create_topic(retention_ms=n), U64, "DSS1010"),
    ("retention_bytes", lambda n: create_topic(retention_bytes=n), U64, "DSS1010"),
    ("retention_ms", lambda n: create_topic(retention_ms=n), (0,), "DSS1010"),
    ("partitions", lambda n: create_topic(partitions=n), U32, "DSS1010"),
    ("factor", lambda n: create_topic(factor=n), U32, "DSS1010"),
    ("ack_wait_ms", lambda n: create_group(ack_wait_ms=n), U64, "DSS1010"),
    ("group offset", lambda n: create_group(start=start(offset=n)), U64, "DSS1010"),
    ("group time", lambda n: create_group(start=start(time_us=n)), I64[:1], "DSS1010"),
    ("group time", lambda n: create_group(start=start(time_us=n)), I64[1:], FINE),
    ("read offset", lambda n: read(start=start(offset=n)), U64, "DSS1010"),
    ("read offset", lambda n: read(start=start(offset=n)), I64[1:], "DSS2015"),
    ("read time", lambda n: read(start=start(time_us=n)), I64[:1], "DSS1010"),
    ("read time", lambda n: read(start=start(time_us=n)), I64[1:], FINE),
    ("read end", lambda n: read(end_time_us=n), I64[:1], "DSS1010"),
    ("read end", lambda n: read(end_time_us=n), I64[1:], FINE),
    ("records_max", lambda n: read(records_max=n), U64, FINE),
    ("timestamp_us", lambda n: lambda stubs: publish(stubs, timestamp_us=n), I64, FINE),
]


@pytest.mark.parametrize(
    ("call", "code"),
    [
        pytest.param(make(value), code, id=f"{field}={value}")
        for field, make, values, code in UNARY
        for value in values
    ],
)
async def test_a_number_of_a_request_is_answered(
    stubs: Stubs, call: Callable[[Stubs], Any], code: str
) -> None:
    assert await code_of(call(stubs)) == code


async def code_of(call: Any) -> str:  # noqa: ANN401 - any call
    async with asyncio.timeout(PATIENCE_S):
        try:
            await call
        except grpc.aio.AioRpcError as aborted:
            return condition_of(aborted).code
    return FINE


@pytest.mark.parametrize("value", U64)
async def test_a_sequence_out_of_bounds_is_answered(stubs: Stubs, value: int) -> None:
    columns = Columns([b"x"], None, "t", None, 1)
    frame = build_frame(columns, partition=0, producer_id=os.urandom(16), sequence=value)
    topic = await stubs.topics.Describe(topics_pb2.DescribeTopicRequest(name="t"))
    reply = await produced(stubs, "t", topic.topic_epoch, frame)
    assert [condition(item.error).code for item in reply.refusals] == ["DSS2016"]


@pytest.mark.parametrize("value", U32)
async def test_a_topic_epoch_out_of_bounds_is_answered(stubs: Stubs, value: int) -> None:
    columns = Columns([b"x"], None, "t", None, 1)
    frame = build_frame(columns, partition=0, producer_id=os.urandom(16), sequence=0)
    reply = await produced(stubs, "t", value, frame)
    assert [condition(item.error).code for item in reply.refusals] == ["DSS2009"]


class Call:
    """One Attach call, which hears the codes of its errors."""

    def __init__(self, stubs: Stubs) -> None:
        self.call = stubs.sessions.Attach()

    async def say(self, **item: Any) -> None:  # noqa: ANN401 - an item of any kind
        await self.call.write(wire.SessionUp(**item))

    async def opened(self, **fields: Any) -> str:  # noqa: ANN401 - of an opening
        """Opened, it is empty; refused, it is the code."""
        await self.say(open=wire.Open(clean_start=True, **fields))
        message = await self.call.read()
        assert isinstance(message, wire.SessionDown)
        return message.error.error.code if message.WhichOneof("item") == "error" else FINE

    async def pong(self) -> str:
        """The code of the first error before the answer to a ping; empty where there is none."""
        await self.say(ping=wire.Ping(token=99))
        code = FINE
        while True:
            message = await self.call.read()
            assert isinstance(message, wire.SessionDown), f"ended after {code or 'nothing'}"
            if message.WhichOneof("item") == "error":
                code = code or message.error.error.code
            elif message.WhichOneof("item") == "pong" and message.pong.token == 99:
                return code


OPEN: list[tuple[str, tuple[int, ...], str]] = [
    ("session_expiry_s", U32, "DSS1010"),
    ("credit_records", U32, FINE),
    ("credit_bytes", U64, FINE),
    ("credit_records", (0,), "DSS1010"),
]


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [(field, value, code) for field, values, code in OPEN for value in values],
)
async def test_a_number_of_an_opening_is_answered(
    stubs: Stubs, field: str, value: int, code: str
) -> None:
    async with asyncio.timeout(PATIENCE_S):
        call = Call(stubs)
        assert await call.opened(**{field: value}) == code
        call.call.cancel()


def subscribe(**fields: Any) -> dict[str, Any]:  # noqa: ANN401 - of a subscription
    filter_ = f"$share/{name()}/t/#"
    return {"subscribe": wire.Subscribe(**{"subscription": 1, "filter": filter_, **fields})}


def settle(**fields: Any) -> dict[str, Any]:  # noqa: ANN401 - of a settlement
    return {"settle": wire.SettleBatch(settles=[wire.Settle(**fields)])}


def range_(number: int) -> list[types_pb2.Range]:
    return [types_pb2.Range(start=number - 1, end=number)]


ITEMS: list[tuple[str, Callable[[int], dict[str, Any]]]] = [
    ("subscription", lambda n: subscribe(subscription=n)),
    ("private subscription", lambda n: subscribe(subscription=n, filter="t/#")),
    ("ack_wait_ms", lambda n: subscribe(ack_wait_ms=n)),
    ("start", lambda n: subscribe(start=start(offset=n))),
    ("unsubscribe", lambda n: {"unsubscribe": wire.Unsubscribe(subscription=n)}),
    ("ping", lambda n: {"ping": wire.Ping(token=n)}),
    ("revoke_finished", lambda n: {"revoke_finished": wire.RevokeFinished(grant=n)}),
    ("grant", lambda n: settle(grant=n, acked=range_(1), frontier=1)),
    ("frontier", lambda n: settle(grant=1, frontier=n)),
    ("acked", lambda n: settle(grant=1, acked=range_(n))),
    ("in_progress", lambda n: settle(grant=1, in_progress=range_(n))),
    ("token", lambda n: settle(grant=1, frontier=1, token=n)),
    ("nak", lambda n: settle(grant=1, naks=[wire.Nak(start=n - 1, end=n)])),
    ("nak delay", lambda n: settle(grant=1, frontier=1, naks=[nak_of_first(n)])),
]


def nak_of_first(delay_ms: int) -> wire.Nak:
    return wire.Nak(start=0, end=1, delay_ms=delay_ms)


@pytest.mark.parametrize(
    "item",
    [pytest.param(make(value), id=f"{field}={value}") for field, make in ITEMS for value in U64],
)
async def test_a_number_of_an_item_is_survived(stubs: Stubs, item: dict[str, Any]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        call = Call(stubs)
        assert await call.opened(session_expiry_s=60) == FINE
        if "subscribe" not in item:
            await call.say(**subscribe(start=start(earliest=True)))
            while (await heard(call)) != "deliver":
                pass
        await call.say(**item)
        code = await call.pong()
        assert code == FINE or code.startswith("DSS")
        call.call.cancel()
    await stubs.daemon.Status(daemon_pb2.DaemonStatusRequest())


async def heard(call: Call) -> str:
    message = await call.call.read()
    assert isinstance(message, wire.SessionDown)
    return str(message.WhichOneof("item"))
