"""The servicer of events, called as gRPC calls it, over a store in memory."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from dss_api.v1 import events_pb2
from dss_core.errors import IllegalArgument, Overloaded, Stopping
from dssd.clock import Clock
from dssd.events.events import Events
from dssd.events.kinds import CONSUMER_SLOW, RETENTION_LOST
from dssd.events.limits import EVENTS_LISTED_MAX
from dssd.events.model import Event
from dssd.rpc.events import EventsServicer
from dssd.store.memory import MemoryStore

NO_CONTEXT: Any = None
"""These handlers do not ask their context anything."""


@pytest.fixture
async def events() -> AsyncIterator[Events]:
    async with asyncio.timeout(60), await Events.open(MemoryStore(), Clock()) as opened:
        yield opened


@pytest.fixture
def servicer(events: Events) -> EventsServicer:
    return EventsServicer(events)


async def tell(events: Events, count: int) -> None:
    for number in range(count):
        kind = RETENTION_LOST if number % 3 == 2 else CONSUMER_SLOW
        await events.tell(Event(kind, f"s/{number}", "It was so.", {"n": str(number)}))


async def listed(servicer: EventsServicer, **request: Any) -> events_pb2.ListEventsReply:  # noqa: ANN401 # fields of a request
    return await servicer.List(events_pb2.ListEventsRequest(**request), NO_CONTEXT)


def numbers(reply: events_pb2.ListEventsReply) -> list[int]:
    return [event.number for event in reply.events]


async def test_an_event_is_listed_with_all_that_is_known(
    events: Events, servicer: EventsServicer
) -> None:
    await tell(events, 1)
    [event] = (await listed(servicer)).events
    assert (event.number, event.code, event.subject) == (1, "consumer.slow", "s/0")
    assert event.severity == events_pb2.EVENT_SEVERITY_WARNING
    assert (event.sentence, dict(event.fields), event.times) == ("It was so.", {"n": "0"}, 1)
    assert event.at_ms == event.last_at_ms > 0


async def test_pages_together_hold_every_event_once(
    events: Events, servicer: EventsServicer
) -> None:
    await tell(events, EVENTS_LISTED_MAX + 50)
    seen: list[int] = []
    token = ""
    while True:
        reply = await listed(servicer, page_token=token, limit=1_000_000)
        assert len(reply.events) <= EVENTS_LISTED_MAX
        seen += numbers(reply)
        token = reply.next_page_token
        if not token:
            break
    assert seen == list(range(1, EVENTS_LISTED_MAX + 51))
    assert reply.last_number == seen[-1]


@pytest.mark.parametrize("limit", [1, 7, 200])
async def test_pages_of_the_latest_go_back_to_the_first(
    events: Events, servicer: EventsServicer, limit: int
) -> None:
    await tell(events, 30)
    seen: list[int] = []
    token = ""
    while True:
        reply = await listed(servicer, page_token=token, limit=limit, latest=True, after_number=3)
        seen = [*numbers(reply), *seen]
        token = reply.next_page_token
        if not token:
            break
    assert seen == list(range(4, 31))


async def test_the_latest_are_asked_for_by_severity_and_subject(
    events: Events, servicer: EventsServicer
) -> None:
    await tell(events, 30)
    assert numbers(await listed(servicer, latest=True, limit=2)) == [29, 30]
    errors = {"severity_min": events_pb2.EVENT_SEVERITY_ERROR}
    assert numbers(await listed(servicer, latest=True, limit=2, **errors)) == [27, 30]
    assert numbers(await listed(servicer, subject_prefix="s/2")) == [3, *range(21, 31)]
    assert numbers(await listed(servicer, after_number=28)) == [29, 30]
    assert numbers(await listed(servicer, after_number=29, latest=True)) == [30]
    empty = await listed(servicer, subject_prefix="none")
    assert (numbers(empty), empty.last_number) == ([], 30)


async def test_what_a_request_may_not_say_is_refused(servicer: EventsServicer) -> None:
    for token in ("x", "-1", "1" * 30, "²"):
        with pytest.raises(IllegalArgument):
            await listed(servicer, page_token=token)
    with pytest.raises(IllegalArgument):
        await listed(servicer, severity_min=99)
    with pytest.raises(IllegalArgument):
        await listed(servicer, after_number=1 << 63)


async def test_a_watch_begins_now_or_behind_a_number(
    events: Events, servicer: EventsServicer
) -> None:
    await tell(events, 3)
    behind = servicer.Watch(events_pb2.WatchEventsRequest(after_number=1), NO_CONTEXT)
    assert [(await anext(behind)).number for _ in range(2)] == [2, 3]
    now = servicer.Watch(events_pb2.WatchEventsRequest(), NO_CONTEXT)
    waiting = asyncio.create_task(anext(now))
    await asyncio.sleep(0)
    await events.tell(Event(RETENTION_LOST, "g", "It was so."))
    assert (await waiting).number == 4
    events.stop()
    with pytest.raises(Stopping):
        await anext(now)
    await behind.aclose()


async def test_watches_are_bounded_and_one_that_ends_makes_room(
    events: Events, servicer: EventsServicer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dssd.rpc.events.EVENT_WATCHES_MAX", 1)
    await tell(events, 1)
    request = events_pb2.WatchEventsRequest(after_number=0)
    first = servicer.Watch(request, NO_CONTEXT)
    await anext(first)
    with pytest.raises(Overloaded):
        await anext(servicer.Watch(request, NO_CONTEXT))
    await first.aclose()
    assert (await anext(servicer.Watch(request, NO_CONTEXT))).number == 1
