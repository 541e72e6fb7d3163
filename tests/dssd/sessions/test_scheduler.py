"""A session's scheduler: who does not answer a leave, and who waits while it works."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dss_core.errors import LogUnreadable
from dss_core.filters import TopicFilter
from dss_core.ids import StreamId
from dss_sim.played_groups import MovedClock, Plant
from dss_sim.played_sessions import Attached, Hall, opened_hall
from dssd.events.kinds import STREAM_STALLED
from dssd.limits import REVOKE_REPORT_SHARE, UNSUBSCRIBE_MS
from dssd.log.port import Chunk
from dssd.machines.delivery.events import DeliveryInput, Grown
from dssd.machines.start_point import Earliest
from dssd.sessions.client_items import Revoke, Status, Unsubscribe, UnsubscribedItem
from dssd.store.memory import MemoryStore
from support.heard_events import Heard

GROUP = "$share/g/orders/#"
REPORT_MS = int(UNSUBSCRIBE_MS * REVOKE_REPORT_SHARE)


class LeapingClock(MovedClock):
    """Leaps ahead where the test lets it; between leaps it runs as the machine's."""

    __slots__ = ("leapt_ms",)

    def __init__(self) -> None:
        super().__init__()
        self.leapt_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.leapt_ms


@pytest.fixture
def clock() -> LeapingClock:
    return LeapingClock()


@pytest.fixture
def heard() -> Heard:
    """The events that sessions tell."""
    return Heard()


@pytest.fixture
async def hall(clock: LeapingClock, tmp_path: Path, heard: Heard) -> AsyncIterator[Hall]:
    store = MemoryStore()
    plant = Plant(tmp_path / "log", store)
    plant.clock = clock
    await plant.start()
    async with opened_hall(plant, heard) as opened:
        yield opened
    await plant.stop()
    await store.close()


async def look_at_the_clock(client: Attached) -> None:
    """Let the pump of the client's session run once, as its alarm would."""
    client.session._scheduler._wake.set()
    for _ in range(3):
        await asyncio.sleep(0)


async def test_a_member_that_does_not_answer_a_leave_is_gone_after_its_timeout(
    hall: Hall, clock: LeapingClock
) -> None:
    [stream] = await hall.plant.topic("orders", 1)
    await hall.plant.publish(stream, 4)
    async with hall.attached("silent") as client, hall.attached("other") as other:
        client.answers_revokes = False
        await client.subscribe(GROUP)
        taken = await client.records(4)
        await client.ack(taken[0][0], 0, 2)
        await client.session.take(Unsubscribe(1))
        await client.next(Revoke)
        clock.leapt_ms += REPORT_MS - 1_000
        await look_at_the_clock(client)
        assert client.session.subscriptions == 1, "it still may say what it has handed out"
        clock.leapt_ms += 1_000 + UNSUBSCRIBE_MS - REPORT_MS
        await look_at_the_clock(client)
        await client.next(UnsubscribedItem)
        assert client.session.subscriptions == 0
        await other.subscribe(GROUP)
        again = await other.records(2)
    assert [(offset, redelivered) for _, offset, redelivered, _ in again] == [(2, True), (3, True)]


async def test_what_goes_out_as_another_subscription_ends_comes_in_order(hall: Hall) -> None:
    [orders] = await hall.plant.topic("orders", 1)
    [bills] = await hall.plant.topic("bills", 1)
    await hall.plant.publish(orders, 15)
    for _ in range(20):
        await hall.plant.publish(bills, 1)
    async with hall.attached(credit_records=20) as client:
        await client.subscribe(GROUP)
        await client.records(15)
        await client.subscribe("$share/g/bills/#", 2)
        await client.records(5)
        # What the first had out comes back to the second; with the end of it, what it was left too.
        await client.session.take(Unsubscribe(1))
        taken = await client.records(15)
    assert [offset for _, offset, _, _ in taken] == list(range(5, 20))


async def test_who_takes_in_that_streams_have_grown_gives_way_after_so_many(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dssd.sessions.scheduler.SESSION_STEP_INPUTS_MAX", 2)
    streams = await hall.plant.topic("orders", 8)
    async with hall.attached() as client:
        await client.subscribe(GROUP)
        for _ in streams:
            await client.granted()
        scheduler = client.session._scheduler
        turns: list[int] = []
        turn = 0
        usual = scheduler.feed

        def seen(given: DeliveryInput) -> None:
            if isinstance(given, Grown):
                turns.append(turn)
            usual(given)

        monkeypatch.setattr(scheduler, "feed", seen)
        for grant in list(scheduler._grants):
            scheduler._note_grown(grant)
        while len(turns) < len(streams):
            await asyncio.sleep(0)
            turn += 1
    assert [turns.count(each) for each in sorted(set(turns))] == [2, 2, 2, 2]


async def test_a_stream_that_is_stalled_is_told_of_with_its_group_and_client(
    hall: Hall, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dssd.machines.delivery.stream.ACKED_RANGES_MAX", 8)
    monkeypatch.setattr("dssd.machines.delivery.stream.RANGES_ADDED_MAX", 4)
    [stream] = await hall.plant.topic("orders", 1)
    await hall.plant.publish(stream, 40)
    async with hall.attached("holder") as client:
        await client.subscribe(GROUP)
        (grant, *_), *_ = await client.records(40)
        for offset in range(1, 40, 2):
            await client.ack(grant, offset, offset + 1)
        shown = await client.next(Status, state="stalled")
        assert "the record at 0" in shown.reason
        [event] = heard.events
        assert (event.kind, event.subject) == (STREAM_STALLED, "orders/0/0")
        assert event.fields == {"group": "g@orders/#", "client_id": "holder", "offset": "0"}
        assert "offset 0" in event.sentence
        await client.ack(grant, 0, 40)
        await client.next(Status, state="active")
    assert len(heard.events) == 1, "that it goes on is no event"


async def test_a_read_that_fails_stalls_the_stream_and_skips_nothing(
    hall: Hall, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    [stream] = await hall.plant.topic("orders", 1)
    await hall.plant.publish(stream, 3)
    usual, failing = hall.plant.log.read, [LogUnreadable(path="1.seg", reason="no")] * 2

    async def read(
        stream: StreamId, offset: int, *, bytes_max: int, matching: TopicFilter | None
    ) -> Chunk:
        if failing:
            raise failing.pop()
        return await usual(stream, offset, bytes_max=bytes_max, matching=matching)

    monkeypatch.setattr(hall.plant.log, "read", read)
    async with hall.attached("holder") as client:
        await client.subscribe(GROUP)
        shown = await client.next(Status, state="stalled")
        assert shown.reason == "orders/0/0 cannot be read behind 0; the read is tried again"
        assert [record[1] for record in await client.records(3)] == [0, 1, 2]
        await client.next(Status, state="active")
    codes = [code for code, _, _ in heard.told()]
    assert codes == ["stream.unreadable", "stream.unreadable", "stream.readable"]


async def test_damage_is_passed_over_only_once_that_is_told_durably(
    hall: Hall, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    [stream] = await hall.plant.topic("orders", 1)
    await hall.plant.publish(stream, 3)
    usual = hall.plant.log.read

    async def read(
        stream: StreamId, offset: int, *, bytes_max: int, matching: TopicFilter | None
    ) -> Chunk:
        chunk = await usual(stream, max(offset, 2), bytes_max=bytes_max, matching=matching)
        return replace(chunk, damaged=((0, 2),)) if offset < 2 else chunk

    monkeypatch.setattr(hall.plant.log, "read", read)
    heard.full = True
    async with hall.attached("holder") as client:
        await client.subscribe(GROUP)
        await client.next(Status, state="stalled")
        assert heard.events == []
        heard.full = False
        [(grant, offset, *_)] = await client.records(1)
        assert (offset, heard.told()[0][:2]) == (2, ("records.passed", "orders/0/0"))
        await client.ack(grant, 2, 3)


async def test_an_edited_group_is_delivered_by_its_new_settings_to_those_who_hold_it(
    hall: Hall, clock: LeapingClock
) -> None:
    [stream] = await hall.plant.topic("orders", 1)
    await hall.plant.publish(stream, 2)
    async with hall.attached("holder") as client:
        await client.subscribe(GROUP)
        await client.records(2)
        group = hall.plant.groups.find("g")
        hall.plant.groups.note_changed(replace(group, ack_wait_ms=1))
        for _ in range(2):  # the wait, then the rest before it comes again
            clock.leapt_ms += 5_000
            await look_at_the_clock(client)
        assert [offset for _, offset, *_ in await client.records(2)] == [0, 1]


async def test_a_subscription_that_rests_begins_with_the_settings_of_its_group(hall: Hall) -> None:
    [stream] = await hall.plant.topic("orders", 1)
    await hall.plant.publish(stream, 1)
    async with hall.attached("ann", expiry_s=60) as client:
        await client.subscribe(GROUP)
    async with hall.attached("ann", expiry_s=60, clean_start=False) as client:
        edited = replace(hall.plant.groups.find("g"), ack_wait_ms=7)
        hall.plant.groups.note_changed(edited)
        await client.subscribe(GROUP)
        await client.granted()
        agent = client.session._scheduler.handler.agent(1)
        assert agent is not None
        assert agent.group == edited


async def test_a_group_that_is_edited_while_it_is_joined_counts_as_edited(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    await hall.plant.topic("orders", 1)
    group = await hall.plant.group(GROUP, Earliest())
    edited, usual = replace(group, ack_wait_ms=7), hall.plant.store.commit

    async def commit(*given: Any) -> list[int]:  # noqa: ANN401 # as of the store
        monkeypatch.setattr(hall.plant.store, "commit", usual)
        hall.plant.groups.note_changed(edited)
        return await usual(*given)

    async with hall.attached() as client:
        monkeypatch.setattr(hall.plant.store, "commit", commit)
        await client.subscribe(GROUP)
        agent = client.session._scheduler.handler.agent(1)
        assert agent is not None
        assert agent.group == edited


async def test_what_was_just_stored_is_delivered_without_a_reader(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    [stream] = await hall.plant.topic("orders", 1)
    async with hall.attached() as client:
        await client.subscribe(GROUP)
        await client.granted()
        await hall.plant.publish(stream, 1)
        await client.records(1)
        monkeypatch.setattr(client.session._scheduler._reads, "next", asyncio.Event().wait)
        await hall.plant.publish(stream, 3)
        assert [offset for _, offset, *_ in await client.records(3)] == [1, 2, 3]


async def test_what_is_too_much_to_read_at_once_is_left_to_the_readers(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dssd.sessions.log_reads.READ_AT_ONCE_BYTES_MAX", 0)
    streams = await hall.plant.topic("orders", 2)
    read: list[StreamId] = []
    usual = hall.plant.log.read

    async def seen(stream: StreamId, *asked: Any, **how: Any) -> Chunk:  # noqa: ANN401 # as of the log
        read.append(stream)
        return await usual(stream, *asked, **how)

    async with hall.attached() as client:
        await client.subscribe(GROUP)
        for _ in streams:
            await client.granted()
        monkeypatch.setattr(hall.plant.log, "read", seen)
        for stream in streams:
            await hall.plant.publish(stream, 1)
        await client.records(2)
        assert set(read) == set(streams)
