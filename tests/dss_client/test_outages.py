"""What a client does while the daemon is away."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import dss_client
from dss_api.v1 import sessions_pb2
from dss_client._backoff import Backoff
from dss_client._outages import LOSSES_OF_A_CALL_MAX, Outages
from dss_client.testing import MemoryDaemon
from dss_client.testing.memory_session import Down
from dss_core.errors import DssError, OutcomeUnknown, Overloaded, Stopping, Unreachable

AWAY = Unreachable(endpoint="unix:/d")


class Calls:
    """Fail one after the other with these, then answer; every call is counted."""

    def __init__(self, *errors: DssError) -> None:
        self.errors = [*errors]
        self.made = 0

    async def __call__(self) -> int:
        self.made += 1
        if self.errors:
            raise self.errors.pop(0)
        return 7


def heard(*, patient: bool = True) -> Outages:
    outages = Outages("unix:/d", patient=patient)
    outages.heard()
    return outages


async def test_a_question_waits_for_a_daemon_that_was_there() -> None:
    calls = Calls(OutcomeUnknown(), AWAY, AWAY, Stopping())
    assert await heard().over(calls, repeats=True) == 7


async def test_a_change_waits_where_it_was_certainly_not_made() -> None:
    assert await heard().over(Calls(AWAY, Stopping()), repeats=False) == 7


async def test_a_change_that_may_have_been_made_is_not_made_again() -> None:
    calls = Calls(AWAY, OutcomeUnknown())
    with pytest.raises(OutcomeUnknown):
        await heard().over(calls, repeats=False)
    assert calls.made == 2


async def test_a_question_that_ends_the_daemon_each_time_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dss_client._outages.Backoff", lambda: Backoff(0, 0))
    calls = Calls(*(OutcomeUnknown() for _ in range(99)))
    with pytest.raises(OutcomeUnknown):
        await heard().over(calls, repeats=True)
    assert calls.made == LOSSES_OF_A_CALL_MAX + 1


async def test_what_the_daemon_refuses_is_not_asked_again() -> None:
    calls = Calls(Overloaded(what="it", limit="1"))
    with pytest.raises(Overloaded):
        await heard().over(calls, repeats=True)
    assert calls.made == 1


@pytest.mark.parametrize(
    "outages", [Outages("unix:/d", patient=True), heard(patient=False)], ids=["first", "impatient"]
)
async def test_a_daemon_that_was_never_there_is_told_at_once(outages: Outages) -> None:
    calls = Calls(AWAY)
    with pytest.raises(Unreachable):
        await outages.over(calls, repeats=True)
    assert calls.made == 1


async def test_who_never_answers_a_first_question_is_not_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dss_client._outages.FIRST_ANSWER_S", 0)
    with pytest.raises(Unreachable):
        await Outages("unix:/d", patient=True).over(Calls(OutcomeUnknown()), repeats=True)


async def test_what_begins_in_an_outage_goes_on_when_the_daemon_is_back(
    daemon: MemoryDaemon,
) -> None:
    async with dss_client.connect(endpoint=daemon.endpoint) as client:
        await client.topics.describe("t")
        await daemon.cut()

        async def publish() -> None:
            async with client.producer("t") as producer:
                await producer.send(b"0")

        async def consume() -> None:
            async with client.subscribe("$share/g/t/#", start="earliest") as subscription:
                assert len(await subscription.fetch(1)) == 1

        async def read() -> None:
            assert (await anext(aiter(client.read("t/#", follow=True)))).payload == b"0"

        works = (client.topics.describe("t"), publish(), consume(), read())
        begun = [asyncio.ensure_future(work) for work in works]
        done, _ = await asyncio.wait(begun, timeout=0.3)
        assert not done
        await daemon.start()
        async with asyncio.timeout(30):
            await asyncio.gather(*begun)


async def test_the_caller_bounds_how_long_an_outage_is_waited_out(daemon: MemoryDaemon) -> None:
    async with dss_client.connect(endpoint=daemon.endpoint) as client:
        await client.topics.describe("t")
        await daemon.cut()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await client.topics.describe("t")
        await daemon.start()


async def test_a_new_client_does_not_inherit_the_outage_of_an_older_one(socket: Path) -> None:
    endpoint = f"unix:{socket}"
    async with dss_client.connect(endpoint=endpoint) as older:
        # Each failed attempt makes the transport's pause longer.
        for _ in range(3):
            with pytest.raises(Unreachable):
                await older.topics.describe("t")
        async with MemoryDaemon(socket), dss_client.connect(endpoint=endpoint) as newer:
            assert (await newer.topics.describe("t")).name == "t"


async def test_a_first_subscribe_that_a_kill_cuts_short_is_made_again(
    daemon: MemoryDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    attach, met = daemon.attach, asyncio.Event()

    async def never_opens(
        items: AsyncIterator[sessions_pb2.SessionUp],
    ) -> AsyncIterator[sessions_pb2.SessionDown]:
        met.set()
        await asyncio.Event().wait()
        yield sessions_pb2.SessionDown()

    monkeypatch.setattr(daemon, "attach", never_opens)
    async with dss_client.connect(endpoint=daemon.endpoint) as client:
        subscription = client.subscribe("$share/g/t/#")
        entering = asyncio.ensure_future(subscription.__aenter__())
        await met.wait()
        await daemon.cut()
        monkeypatch.setattr(daemon, "attach", attach)
        await daemon.start()
        async with asyncio.timeout(30):
            await entering
        await subscription.__aexit__(None, None, None)


async def test_a_subscribe_that_meets_a_stop_is_asked_for_again(
    daemon: MemoryDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = daemon.take_up
    asked = asyncio.Event()

    def refuse(up: sessions_pb2.SessionUp, down: Down) -> None:
        if up.WhichOneof("item") != "subscribe":
            plain(up, down)
            return
        error = sessions_pb2.SessionError(final=True, subscription=up.subscribe.subscription)
        error.error.code = Stopping.code
        daemon.say(error=error)
        asked.set()

    async with dss_client.connect(endpoint=daemon.endpoint) as client:
        monkeypatch.setattr(daemon, "take_up", refuse)
        subscription = client.subscribe("$share/g/t/#")
        entering = asyncio.ensure_future(subscription.__aenter__())
        await asked.wait()
        await daemon.cut()
        monkeypatch.setattr(daemon, "take_up", plain)
        await daemon.start()
        async with asyncio.timeout(30):
            await entering
        await subscription.__aexit__(None, None, None)
