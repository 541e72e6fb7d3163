"""The events of a real daemon, through the client."""

import asyncio
import time
from pathlib import Path

import pytest

import dss_client
from dss_core.errors import IllegalArgument, Unreachable
from dssd.events.kinds import CONSUMER_SLOW, RETENTION_LOST, STREAM_STALLED
from dssd.events.model import Event
from support.daemon_process import running
from support.told_events import tell_in

RECORDS = 2_400


def serve(home: Path) -> tuple[str, ...]:
    return ("--data-dir", str(home / "data"), "--listen", f"unix:{home / 'd.sock'}")


def endpoint(home: Path) -> str:
    return f"unix:{home / 'd.sock'}"


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def cut(client: str) -> Event:
    return Event(CONSUMER_SLOW, client, "It stopped reading.", {"unread_bytes": "7"})


async def test_events_are_listed_by_severity_subject_time_and_number(home: Path) -> None:
    await tell_in(home / "data", now_ms() - 7_200_000, [cut("old"), cut("old/2")])
    lost = Event(RETENTION_LOST, "g@orders/#", "Some records go.", {"records": "5"})
    await tell_in(home / "data", now_ms(), [lost, *(cut(f"new/{at}") for at in range(450))])
    async with running(*serve(home)), dss_client.connect(endpoint=endpoint(home)) as client:
        every = await client.events.list()
        assert [event.number for event in every.events] == list(range(1, 455))
        assert every.last_number == 454
        first, third = every.events[0], every.events[2]
        assert (first.code, first.severity, first.subject) == ("consumer.slow", "warning", "old")
        assert (first.fields, first.times) == ({"unread_bytes": "7"}, 1)
        assert third.severity == "error"
        assert (await client.events.list(severity="error")).events == (third,)
        old = await client.events.list(subject="old")
        assert [event.subject for event in old.events] == ["old", "old/2"]
        late = await client.events.list(since="-1h", latest=401)
        assert [event.number for event in late.events] == list(range(54, 455))
        assert len((await client.events.list(since="-1h")).events) == 452
        assert (await client.events.list(latest=0)).events == ()
        assert len((await client.events.list(latest=100_000)).events) == 454
        assert [event.number for event in (await client.events.list(after=453)).events] == [454]
        with pytest.raises(IllegalArgument):
            await client.events.list(severity="bad")
        with pytest.raises(IllegalArgument):
            await client.events.list(after=-1)


async def test_a_watch_goes_on_behind_its_last_event_over_a_restart(home: Path) -> None:
    await tell_in(home / "data", now_ms(), [cut("a"), cut("b"), cut("c")])
    async with dss_client.connect(endpoint=endpoint(home)) as client, asyncio.timeout(60):
        watching = aiter(client.events.watch(after=1, severity="warning"))
        async with running(*serve(home)) as daemon:
            assert [(await anext(watching)).subject for _ in range(2)] == ["b", "c"]
            waiting = asyncio.ensure_future(anext(watching))
            assert await daemon.stop() == 0
        await tell_in(home / "data", now_ms(), [cut("d"), cut("e")])
        async with running(*serve(home)):
            event = await waiting
            assert (event.number, event.subject) == (6, "d")
            assert (await anext(watching)).subject == "e"


async def test_a_daemon_that_was_never_there_is_an_error(home: Path) -> None:
    async with dss_client.connect(endpoint=endpoint(home)) as client:
        with pytest.raises(Unreachable):
            await anext(aiter(client.events.watch(after=0)))


async def test_a_stream_that_stalls_is_seen_by_whoever_watches(home: Path) -> None:
    async with (
        asyncio.timeout(60),
        running(*serve(home)),
        dss_client.connect("holder", endpoint=endpoint(home)) as client,
    ):
        await client.topics.create("orders", partitions=1)
        async with client.producer("orders") as producer:
            for at in range(RECORDS):
                producer.send_nowait(b"%d" % at)
        warned = client.events.watch(after=0, severity="warning")
        watching = asyncio.ensure_future(anext(aiter(warned)))
        async with client.subscribe("$share/g/orders/#", start="earliest") as subscription:
            async for record in subscription:
                if record.offset % 2:
                    await record.ack()
                if record.offset == RECORDS - 1:
                    break
            event = await watching
    assert (event.code, event.subject) == (STREAM_STALLED.code, "orders/0/0")
    assert event.fields == {"group": "g@orders/#", "client_id": "holder", "offset": "0"}
