"""Bad input of a consumer, past any client's own checks: its own code, and nothing is lost.

Each test leaves a session that still works, and a group that still has every record.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from dss_api.v1 import sessions_pb2, types_pb2
from dss_core.decode import decode
from dss_core.errors import DssError
from support.daemon_process import running, short_directory
from support.raw_stubs import Stubs, condition, connected
from support.raw_topic import RawTopic

pytestmark = pytest.mark.asyncio(loop_scope="module")  # one daemon for all

PATIENCE_S = 60.0
EARLIEST = types_pb2.Start(earliest=True)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def endpoint() -> AsyncIterator[str]:
    with short_directory() as directory:
        async with running("--data-dir", str(directory)) as daemon:
            yield daemon.endpoint
            assert await daemon.stop() == 0
            assert "Traceback" not in daemon.said


@pytest_asyncio.fixture(loop_scope="module")
async def stubs(endpoint: str) -> AsyncIterator[Stubs]:
    async with connected(endpoint) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def topic(stubs: Stubs) -> RawTopic:
    """A topic of its own for each test, with three records."""
    made = await RawTopic.created(stubs, "t" + os.urandom(6).hex())
    await made.put(stubs, b"0", b"1", b"2")
    return made


class Call:
    """One session over a raw call. It gives a stream back as soon as it is told to."""

    def __init__(self, stubs: Stubs) -> None:
        self._call = stubs.sessions.Attach()

    async def opened(self) -> "Call":
        await self.say(open=sessions_pb2.Open())
        await self.hear("opened")
        return self

    async def say(self, **item: Any) -> None:  # noqa: ANN401 # an item of any kind
        await self._call.write(sessions_pb2.SessionUp(**item))

    async def hear(self, kind: str) -> Any:  # noqa: ANN401 # an item of any kind
        """The next item of the kind; others are passed over."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                message = await self._call.read()
                assert isinstance(message, sessions_pb2.SessionDown), f"ended before {kind}"
                if message.HasField("revoke"):
                    finished = sessions_pb2.RevokeFinished(grant=message.revoke.grant)
                    await self.say(revoke_finished=finished)
                if message.WhichOneof("item") == kind:
                    return getattr(message, kind)

    async def subscribe(self, filter_: str, number: int = 1) -> None:
        item = sessions_pb2.Subscribe(subscription=number, filter=filter_, start=EARLIEST)
        await self.say(subscribe=item)

    async def refusal(self) -> DssError:
        error = condition((await self.hear("error")).error)
        assert error.hint_text
        return error

    async def settle(self, **settle: Any) -> None:  # noqa: ANN401 # fields of any kind
        batch = sessions_pb2.SettleBatch(settles=[sessions_pb2.Settle(**settle)])
        await self.say(settle=batch)

    async def delivered(self, count: int) -> tuple[int, list[bytes]]:
        """A grant, and so many records of it."""
        payloads: list[bytes] = []
        while len(payloads) < count:
            deliver = await self.hear("deliver")
            payloads += decode(deliver.frames).payloads
        return int(deliver.grant), payloads


def acked(start: int, end: int) -> list[types_pb2.Range]:
    return [types_pb2.Range(start=start, end=end)]


@pytest.mark.parametrize(
    ("filter_", "code"),
    [
        ("$queue/orders", "DSS1003"),
        ("$queue/team/orders", "DSS2008"),
        ("$share/a b/orders", "DSS1001"),
        ("$share/team/a/#/b", "DSS1002"),
        ("", "DSS1002"),
    ],
)
async def test_a_bad_subscription_is_refused_and_the_next_one_served(
    stubs: Stubs, topic: RawTopic, filter_: str, code: str
) -> None:
    call = await Call(stubs).opened()
    await call.subscribe(filter_, 1)
    assert (await call.refusal()).code == code
    await call.subscribe(f"$share/team/{topic.name}", 2)
    assert (await call.delivered(3))[1] == [b"0", b"1", b"2"]


async def test_an_ack_for_a_grant_that_never_was_is_refused(stubs: Stubs, topic: RawTopic) -> None:
    call = await Call(stubs).opened()
    await call.settle(grant=77, acked=acked(0, 3))
    error = await call.refusal()
    assert (error.code, error.fields["grant"]) == ("DSS6001", "77")
    await call.subscribe(f"$share/team/{topic.name}")
    assert (await call.delivered(3))[1] == [b"0", b"1", b"2"]


async def test_an_ack_for_a_grant_that_is_over_is_refused_and_its_records_go_to_another(
    stubs: Stubs, topic: RawTopic
) -> None:
    late = await Call(stubs).opened()
    await late.subscribe(f"$share/team/{topic.name}")
    grant, _ = await late.delivered(3)
    await late.say(unsubscribe=sessions_pb2.Unsubscribe(subscription=1))
    await late.hear("unsubscribed")
    await late.settle(grant=grant, acked=acked(0, 3))
    assert (await late.refusal()).code == "DSS6001"
    other = await Call(stubs).opened()
    await other.subscribe(f"$share/team/{topic.name}")
    assert (await other.delivered(3))[1] == [b"0", b"1", b"2"]


async def test_an_ack_for_what_was_not_delivered_is_refused(stubs: Stubs, topic: RawTopic) -> None:
    call = await Call(stubs).opened()
    await call.subscribe(f"$share/team/{topic.name}")
    grant, _ = await call.delivered(3)
    await call.settle(grant=grant, acked=acked(1, 9))
    assert (await call.refusal()).code == "DSS6005"
    await topic.put(stubs, b"3")
    assert await call.delivered(1) == (grant, [b"3"])
