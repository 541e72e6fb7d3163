"""Produce calls over a real log: every frame is answered once, in order, whatever ends the call."""

import asyncio
import errno
import os
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from dss_api.v1 import log_pb2
from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.errors import OutcomeUnknown, Overloaded, ProducerTooOld, StaleTopicEpoch
from dss_core.limits import MESSAGE_BYTES_MAX
from dss_core.routing import SWITCHES, key_hash
from dssd.log.port import Answered, Append
from dssd.rpc.backpressure import AppendBudget
from dssd.rpc.frame_checks import Gates
from dssd.rpc.produce_call import (
    FLIGHT_FRAMES_MAX,
    PRODUCE_ITEMS_IN_FLIGHT_MAX,
    REPLY_ANSWERS_USUAL,
    ProduceCall,
    TakesFrames,
)
from dssd.topics.catalogue import Topic
from dssd.version import version
from support.log_in_process import Shelf
from support.loop_yields import turns_of_others


class SlowLog:
    """Hands frames to a log once it is let."""

    def __init__(self, log: TakesFrames) -> None:
        self._log = log
        self.asked = 0
        self._may_go_on = False
        self._held: list[tuple[Sequence[Append], Answered]] = []
        self._asked_again = asyncio.Event()

    async def was_asked(self, times: int) -> None:
        while self.asked < times:
            self._asked_again.clear()
            await self._asked_again.wait()

    def begin_append(self, appends: Sequence[Append], answered: Answered) -> None:
        self.asked += 1
        self._asked_again.set()
        self._held.append((appends, answered))
        if self._may_go_on:
            self.go_on()

    def go_on(self) -> None:
        self._may_go_on = True
        for held in self._held:
            self._log.begin_append(*held)
        self._held.clear()


def request(topic: Topic, *frames: bytes) -> log_pb2.ProduceRequest:
    return log_pb2.ProduceRequest(
        topic=topic.name, topic_epoch=topic.topic_epoch, frames=frames, features=[SWITCHES]
    )


async def each(
    requests: Sequence[log_pb2.ProduceRequest], end: asyncio.Event | None = None
) -> AsyncIterator[log_pb2.ProduceRequest]:
    for item in requests:
        yield item
    if end is not None:
        await end.wait()


async def answers(call: ProduceCall) -> list[log_pb2.ProduceReply]:
    return [reply async for reply in call.replies()]


async def test_answers_come_in_the_order_of_the_frames_and_gather(shelf: Shelf) -> None:
    topic = await shelf.topic("a", 2)
    requests = [
        request(topic, shelf.frame(topic, [b"x"], partition=at % 2), b"garbage") for at in range(10)
    ]
    log = SlowLog(shelf.log)
    async with asyncio.TaskGroup() as tasks:
        call = ProduceCall(Gates(shelf.catalogue), log, AppendBudget(1 << 30).of(""))
        tasks.create_task(call.read(each(requests)))
        answering = tasks.create_task(answers(call))
        await log.was_asked(10)
        log.go_on()
        replies = await answering
    acks = [ack for reply in replies for ack in reply.acks]
    assert [(ack.partition, ack.sequence) for ack in acks] == [
        (at % 2, at // 2) for at in range(10)
    ]
    assert [ack.base_offset for ack in acks] == [at // 2 for at in range(10)]
    assert sum(len(reply.refusals) for reply in replies) == 10
    assert len(replies) < 10


async def test_the_log_is_told_who_sends(shelf: Shelf) -> None:
    topic = await shelf.topic("a")
    owners: list[int] = []

    class Noting:
        def begin_append(self, appends: Sequence[Append], answered: Answered) -> None:
            owners.extend(each.owner for each in appends)
            shelf.log.begin_append(appends, answered)

    async with asyncio.TaskGroup() as tasks:
        call = ProduceCall(Gates(shelf.catalogue), Noting(), AppendBudget(1 << 30).of(""), owner=7)
        tasks.create_task(call.read(each([request(topic, shelf.frame(topic, [b"x"]))])))
        await answers(call)
    assert owners == [7]


async def test_reading_waits_for_the_disk_only_when_the_call_is_full(shelf: Shelf) -> None:
    topic = await shelf.topic("a")
    count = PRODUCE_ITEMS_IN_FLIGHT_MAX + 10
    requests = [request(topic, shelf.frame(topic, [b"x"])) for _ in range(count)]
    log = SlowLog(shelf.log)
    async with asyncio.TaskGroup() as tasks:
        call = ProduceCall(Gates(shelf.catalogue), log, AppendBudget(1 << 30).of(""))
        reader = tasks.create_task(call.read(each(requests)))
        answering = tasks.create_task(answers(call))
        for _ in range(count * 2):
            await asyncio.sleep(0)
        assert log.asked == PRODUCE_ITEMS_IN_FLIGHT_MAX
        assert not reader.done()
        log.go_on()
        replies = await answering
    assert sum(len(reply.acks) for reply in replies) == count


async def test_a_request_of_many_frames_goes_in_several_flights(shelf: Shelf) -> None:
    topic = await shelf.topic("a")
    count = FLIGHT_FRAMES_MAX + 10
    many = request(topic, *(shelf.frame(topic, [b"x"]) for _ in range(count)))
    log = SlowLog(shelf.log)
    log.go_on()
    budget = AppendBudget(1 << 30).of("")
    async with asyncio.TaskGroup() as tasks:
        call = ProduceCall(Gates(shelf.catalogue), log, budget)
        tasks.create_task(call.read(each([many])))
        replies = await answers(call)
    assert log.asked > 1
    assert [ack.sequence for reply in replies for ack in reply.acks] == list(range(count))
    assert all(len(reply.acks) < 2 * REPLY_ANSWERS_USUAL for reply in replies)


async def test_a_request_that_was_taken_in_part_gives_its_whole_budget_back(
    shelf: Shelf,
) -> None:
    topic = await shelf.topic("a")
    frames = [shelf.frame(topic, [b"x"]) for _ in range(3 * FLIGHT_FRAMES_MAX)]
    log = SlowLog(shelf.log)
    budget = AppendBudget(sum(map(len, frames))).of("")
    async with asyncio.TaskGroup() as tasks:
        call = ProduceCall(Gates(shelf.catalogue), log, budget)
        reader = tasks.create_task(call.read(each([request(topic, *frames)])))
        await log.was_asked(1)
        reader.cancel()
        log.go_on()
    await asyncio.wait_for(budget.take(sum(map(len, frames))), 60)


async def test_frames_of_an_old_call_are_not_stored_after_a_newer_call_sent_some(
    shelf: Shelf,
) -> None:
    topic = await shelf.topic("a")
    gates = Gates(shelf.catalogue)
    first, second = (shelf.frame(topic, [b"x"]) for _ in range(2))
    dead, alive = (ProduceCall(gates, shelf.log, AppendBudget(1 << 30).of("")) for _ in range(2))
    await alive.read(each([request(topic, first)]))
    assert len((await answers(alive))[0].acks) == 1
    await dead.read(each([request(topic, second)]))
    (reply,) = await answers(dead)
    assert [refusal.error.code for refusal in reply.refusals] == [OutcomeUnknown.code]
    assert shelf.log.bounds(topic.producing.streams()[0]).end == 1


@pytest.mark.parametrize("apart", [False, True])
async def test_behind_a_frame_that_was_put_off_a_call_stores_nothing(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, apart: bool
) -> None:
    topic = await shelf.topic("a", 2)
    first, second = (shelf.frame(topic, [b"%d" % number]) for number in range(2))
    other = shelf.frame(topic, [b"other"], partition=1)
    usual: Any = os.open

    def one_is_missing(*arguments: object, **named: object) -> int:
        monkeypatch.setattr(os, "open", usual)
        raise OSError(errno.EMFILE, "too many")

    monkeypatch.setattr(os, "open", one_is_missing)
    refused: list[log_pb2.ProduceRefusal] = []
    answered = asyncio.Event()

    async def following() -> AsyncIterator[log_pb2.ProduceRequest]:
        yield request(topic, first)
        if apart:
            await answered.wait()
        yield request(topic, second)
        yield request(topic, other)

    async with asyncio.TaskGroup() as tasks:
        call = ProduceCall(Gates(shelf.catalogue), shelf.log, AppendBudget(1 << 30).of(""))
        tasks.create_task(call.read(following()))

        async def answer() -> None:
            async for reply in call.replies():
                refused.extend(reply.refusals)
                answered.set()
                assert not reply.acks

        with pytest.raises(Overloaded):
            await answer()
    assert {each.error.code for each in refused} == {Overloaded.code}
    assert (refused[0].partition, refused[0].sequence) == (0, 0)
    async with asyncio.TaskGroup() as tasks:
        call = ProduceCall(Gates(shelf.catalogue), shelf.log, AppendBudget(1 << 30).of(""))
        tasks.create_task(call.read(each([request(topic, first, second)])))
        (reply,) = await answers(call)
    assert [(ack.sequence, ack.base_offset, ack.repeated) for ack in reply.acks] == [
        (0, 0, False),
        (1, 1, False),
    ]


async def test_a_stopped_call_answers_what_it_has_read(shelf: Shelf) -> None:
    topic = await shelf.topic("a")
    log = SlowLog(shelf.log)
    never = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        call = ProduceCall(Gates(shelf.catalogue), log, AppendBudget(1 << 30).of(""))
        requests = [request(topic, shelf.frame(topic, [b"x"]))]
        reader = tasks.create_task(call.read(each(requests, never)))
        answering = tasks.create_task(answers(call))
        await log.was_asked(1)
        call.stop()
        log.go_on()
        replies = await answering
        reader.cancel()
    assert [ack.sequence for reply in replies for ack in reply.acks] == [0]


async def test_what_was_handed_over_is_stored_though_the_client_has_gone(shelf: Shelf) -> None:
    topic = await shelf.topic("a")
    log = SlowLog(shelf.log)
    budget = AppendBudget(1 << 30).of("")
    async with asyncio.TaskGroup() as tasks:
        call = ProduceCall(Gates(shelf.catalogue), log, budget)
        reader = tasks.create_task(call.read(each([request(topic, shelf.frame(topic, [b"x"]))])))
        answering = tasks.create_task(answers(call))
        await log.was_asked(1)
        answering.cancel()
        reader.cancel()
        log.go_on()
    await budget.take(1 << 30)
    assert shelf.log.bounds(topic.streams()[0]).end == 1


async def test_a_sealed_storage_topic_refuses_new_frames_and_answers_repeated_ones(
    shelf: Shelf,
) -> None:
    topic = await shelf.topic("a")
    first, second = shelf.frame(topic, [b"0"]), shelf.frame(topic, [b"1"])
    async with asyncio.TaskGroup() as tasks:
        call = ProduceCall(Gates(shelf.catalogue), shelf.log, AppendBudget(1 << 30).of(""))
        tasks.create_task(call.read(each([request(topic, first)])))
        await answers(call)
        async with shelf.log.sealing(topic.producing.storage_topic_id) as ends:
            assert ends.offsets == (1,)
        call = ProduceCall(Gates(shelf.catalogue), shelf.log, AppendBudget(1 << 30).of(""))
        tasks.create_task(call.read(each([request(topic, first, second)])))
        (reply,) = await answers(call)
    assert [(ack.base_offset, ack.repeated) for ack in reply.acks] == [(0, True)]
    (refusal,) = reply.refusals
    assert (refusal.error.code, refusal.sequence) == ("DSS2010", 1)
    assert refusal.error.fields == {"topic": "a", "ordinal": "0"}


async def test_a_frame_of_another_epoch_gets_its_first_answer_again_or_is_refused(
    shelf: Shelf,
) -> None:
    topic = await shelf.topic("a")
    stored = [shelf.frame(topic, [b"%d" % number]) for number in range(7)]
    new = shelf.frame(topic, [b"new"])
    behind_a_gap = shelf.frame(topic, [b"later"])
    columns = Columns([b"x"], None, "a", None, 1)
    stranger = build_frame(columns, partition=0, producer_id=b"somebody else   ", sequence=3)
    stale = log_pb2.ProduceRequest(
        topic="a",
        topic_epoch=topic.topic_epoch + 1,
        frames=[*stored, new, behind_a_gap, stranger],
    )
    async with asyncio.TaskGroup() as tasks:
        for asked in (request(topic, *stored), stale, request(topic, new, behind_a_gap)):
            call = ProduceCall(Gates(shelf.catalogue), shelf.log, AppendBudget(1 << 30).of(""))
            tasks.create_task(call.read(each([asked])))
            reply = log_pb2.ProduceReply()
            for part in await answers(call):
                reply.MergeFrom(part)
            if asked is stale:
                acks = [(ack.base_offset, ack.repeated) for ack in reply.acks]
                assert acks == [(at, True) for at in range(2, 7)]
                codes = [refusal.error.code for refusal in reply.refusals]
                assert codes == ["DSS2017"] * 2 + ["DSS2009"] * 3
    # Nothing of the stale request was stored, and the producer goes on where it was.
    assert [(ack.base_offset, ack.repeated) for ack in reply.acks] == [(7, False), (8, False)]


async def test_the_topic_of_a_call_holds_until_another_is_named(shelf: Shelf) -> None:
    first, second = await shelf.topic("a"), await shelf.topic("b")
    requests = [
        request(first, shelf.frame(first, [b"0"])),
        log_pb2.ProduceRequest(topic_epoch=first.topic_epoch, frames=[shelf.frame(first, [b"1"])]),
        request(second, shelf.frame(second, [b"2"])),
    ]
    async with asyncio.TaskGroup() as tasks:
        call = ProduceCall(Gates(shelf.catalogue), shelf.log, AppendBudget(1 << 30).of(""))
        tasks.create_task(call.read(each(requests)))
        replies = await answers(call)
    assert sum(len(reply.acks) for reply in replies) == 3
    assert shelf.log.bounds(first.streams()[0]).end == 2
    assert shelf.log.bounds(second.streams()[0]).end == 1


@pytest.mark.usefixtures("short_turns")
async def test_a_frame_of_very_many_subjects_is_checked_with_others_in_between(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dssd.rpc.frame_checks.SUBJECT_MATCHES_PER_STEP", 10)
    topic = await shelf.topic("a")
    good = several_subjects(0, [f"a/{at}" for at in range(30)])
    again = several_subjects(1, [f"a/{at}" for at in range(30)])
    bad = several_subjects(2, [*(f"a/{at}" for at in range(30)), "elsewhere"])
    frames = request(topic, good, again, bad)
    replies, turns = await answered_beside_others(shelf, frames)
    assert [ack.sequence for reply in replies for ack in reply.acks] == [0, 1]
    (refusal,) = [refusal for reply in replies for refusal in reply.refusals]
    assert (refusal.sequence, refusal.error.code) == (2, "DSS1004")
    assert refusal.error.fields["subject"] == "elsewhere"
    assert turns > 60


@pytest.mark.usefixtures("short_turns")
async def test_a_frame_of_very_many_keys_is_hashed_with_others_in_between(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dssd.rpc.frame_checks.HASH_KEYS_ONE_FRAME_IN", 1)
    monkeypatch.setattr("dssd.rpc.frame_checks.HASHED_KEYS_PER_STEP", 2)
    topic = await shelf.topic("a")
    frames = [keyed(0, forged_row=None), keyed(1, forged_row=KEYS - 1), keyed(1, forged_row=None)]
    replies, turns = await answered_beside_others(shelf, request(topic, *frames))
    assert [ack.sequence for reply in replies for ack in reply.acks] == [0, 1]
    (refusal,) = [refusal for reply in replies for refusal in reply.refusals]
    assert (refusal.sequence, refusal.error.fields["reason"]) == (
        1,
        "a key_hash is not the hash of its key",
    )
    assert turns >= 3 * KEYS // 2


KEYS = 100


def keyed(sequence: int, *, forged_row: int | None) -> bytes:
    keys = [b"k%d" % row for row in range(KEYS)]
    hashes = [key_hash(key) for key in keys]
    if forged_row is not None:
        hashes[forged_row] += 1
    columns = Columns([b"x"] * KEYS, keys, "a", None, 1, key_hashes=hashes)
    return build_frame(columns, partition=0, producer_id=b"p" * 16, sequence=sequence)


async def answered_beside_others(
    shelf: Shelf, item: log_pb2.ProduceRequest
) -> tuple[list[log_pb2.ProduceReply], int]:
    """The answers of a call, and how often another task ran meanwhile."""
    replies: list[log_pb2.ProduceReply] = []

    async def run() -> None:
        async with asyncio.TaskGroup() as tasks:
            call = ProduceCall(Gates(shelf.catalogue), shelf.log, AppendBudget(1 << 30).of(""))
            tasks.create_task(call.read(each([item])))
            replies.extend(await answers(call))

    turns = await turns_of_others(run())
    return replies, turns


def several_subjects(sequence: int, subjects: list[str]) -> bytes:
    columns = Columns([b"x"] * len(subjects), None, subjects, None, 1)
    return build_frame(columns, partition=0, producer_id=b"p" * 16, sequence=sequence)


async def test_replies_full_of_long_refusals_stay_far_below_the_largest_message(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a slow machine there would be more flights than a call may have without being answered.
    monkeypatch.setattr("dssd.rpc.produce_call.FLIGHT_CHECK_S", 60.0)
    topic = await shelf.topic("a", 1, *(f"{'b' * 900}/{at}/#" for at in range(64)))
    frame = several_subjects(0, ["\N{SNOWMAN}" * 340])
    log = SlowLog(shelf.log)
    call = ProduceCall(Gates(shelf.catalogue), log, AppendBudget(1 << 30).of(""))
    await call.read(each([request(topic, *[frame] * 2_000)]))
    replies = await answers(call)
    assert sum(len(reply.refusals) for reply in replies) == 2_000
    assert max(reply.ByteSize() for reply in replies) < MESSAGE_BYTES_MAX // 2


async def test_the_budget_counts_the_overhead_of_small_frames(shelf: Shelf) -> None:
    topic = await shelf.topic("a")
    frames = [shelf.frame(topic, [b"x"]) for _ in range(10)]
    log = SlowLog(shelf.log)
    budget = AppendBudget(sum(map(len, frames)) + 2).of("")
    async with asyncio.TaskGroup() as tasks:
        call = ProduceCall(Gates(shelf.catalogue), log, budget)
        tasks.create_task(call.read(each([request(topic, *frames)])))
        answering = tasks.create_task(answers(call))
        await log.was_asked(1)
        waiting = tasks.create_task(budget.take(1))
        await asyncio.sleep(0)
        assert not waiting.done()
        log.go_on()
        await answering
        await waiting


async def grown(shelf: Shelf, topic: Topic, partitions: int) -> Topic:
    """The topic, once it goes on in other streams."""
    ordinal = topic.produce_ordinal + 1
    await shelf.catalogue.add_storage_topic(topic.topic_id, ordinal, partitions)
    await shelf.catalogue.switch(topic.topic_id, ordinal)
    return shelf.catalogue.get(topic.name)


async def test_a_client_that_follows_no_switch_is_told_which_version_does(shelf: Shelf) -> None:
    topic = await shelf.topic("a")
    stored, unanswered, late = (shelf.frame(topic, [b"%d" % number]) for number in range(3))
    gates = Gates(shelf.catalogue)
    features: list[str] = []

    async def answer(*frames: bytes, at: Topic = topic) -> log_pb2.ProduceReply:
        call = ProduceCall(gates, shelf.log, AppendBudget(1 << 30).of(""))
        asked = log_pb2.ProduceRequest(
            topic="a", topic_epoch=at.topic_epoch, frames=frames, features=features
        )
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(call.read(each([asked])))
            (reply,) = await answers(call)
        return reply

    assert len((await answer(stored, unanswered)).acks) == 2
    now = await grown(shelf, topic, 3)
    reply = await answer(unanswered, late)
    # What it cannot know to be stored is answered; the rest is not stored, anywhere.
    assert [(ack.sequence, ack.repeated) for ack in reply.acks] == [(1, True)]
    (refusal,) = reply.refusals
    assert (refusal.error.code, refusal.error.definite) == (ProducerTooOld.code, True)
    assert f"It needs {version()} or later." in refusal.error.message
    assert [shelf.log.bounds(stream).end for stream in now.producing.streams()] == [0, 0, 0]
    features.append(SWITCHES)
    (refusal,) = (await answer(late)).refusals
    assert refusal.error.code == StaleTopicEpoch.code
