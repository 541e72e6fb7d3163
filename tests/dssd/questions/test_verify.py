"""Whether what a group is done with adds up, over real leaders, sessions and a real log."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace

import pytest

from dss_core.changes import SkipRecords
from dss_core.errors import Overloaded, StreamNotRead
from dss_core.ids import StreamId
from dss_core.lane import DEAD, RETRY
from dss_core.progress import Progress
from dss_sim.played_groups import LOOK_AGAIN_S, PATIENCE_S
from dss_sim.played_sessions import Hall
from dssd.machines.fate import Counts
from dssd.machines.start_point import AtOffset, Earliest, StartPoint
from dssd.operations.operations import Caller, Operations
from dssd.questions import verify
from dssd.questions.questions import Questions
from dssd.questions.verify import QueueSums, Scanned, ScanProgress, StreamSums
from dssd.store.port import Put
from dssd.store.rows import ProgressRow
from support.lane_rows import laned_group, queues_of, store_lane

GROUP = "$share/g/orders/eu"
STREAM = "orders/0/0"


async def orders(hall: Hall) -> StreamId:
    """Four records for the group, then three that its filter rejects, then four."""
    (stream,) = await hall.plant.topic("orders", 1)
    for subject, records in (("eu", 4), ("us", 3), ("eu", 4)):
        await hall.plant.publish(stream, records, f"orders/{subject}")
    await hall.plant.group(GROUP, Earliest())
    return stream


async def sums(questions: Questions, *, scan: bool = False) -> StreamSums:
    async with aclosing(questions.verify.ask("g", scan=scan)) as answers:
        (found,) = [each async for each in answers if isinstance(each, StreamSums)]
    return found


async def sums_once(questions: Questions, holds: Callable[[StreamSums], bool]) -> StreamSums:
    """The sums, once that holds: leaders hear of things a little later."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds(found := await sums(questions)):  # noqa: ASYNC110 - it is told to nobody
            await asyncio.sleep(LOOK_AGAIN_S)
    return found


async def consumed(hall: Hall, questions: Questions) -> None:
    """Nine offsets are done: six records acknowledged, three rejected; its member is gone."""
    async with hall.attached() as client:
        await client.subscribe(GROUP)
        grant = (await client.records(8))[0][0]
        await client.ack(grant, 0, 4)
        await client.ack(grant, 7, 9)
        found = await sums_once(questions, lambda found: found.counts.acked == 6)
        assert (found.counts, found.out) == (Counts(acked=6, filtered=3), 2)
        assert (found.appended, found.waiting, found.gone) == (11, 0, 0)


async def store(hall: Hall, stream: StreamId, acked: int, filtered: int = 3) -> None:
    """Change counts where no leader has them."""
    (group,) = hall.plant.groups.groups()
    registry = hall.plant.registry
    async with asyncio.timeout(PATIENCE_S):
        while registry.snapshot(group.group_id) is not None:  # noqa: ASYNC110 - it is told to nobody
            await asyncio.sleep(LOOK_AGAIN_S)
    found = await hall.plant.store.read(ProgressRow, (group.group_id, *stream))
    assert found is not None
    await hall.plant.store.commit(
        [Put(replace(found.row, acked_count=acked, filtered_count=filtered))]
    )


async def test_what_is_done_out_and_waiting_is_what_was_appended(
    hall: Hall, questions: Questions
) -> None:
    await orders(hall)
    none = await sums(questions)
    assert (none.appended, none.waiting, none.counts, none.problem) == (11, 11, Counts(), "")
    await consumed(hall, questions)
    found = await sums(questions, scan=True)
    assert found.scanned == Scanned(matching=6, filtered=3, missing=0)
    assert (found.waiting, found.problem) == (2, "")


async def test_counts_that_say_more_or_less_than_progress_do_not_add_up(
    hall: Hall, questions: Questions
) -> None:
    stream = await orders(hall)
    await consumed(hall, questions)
    await store(hall, stream, 8)
    more = await sums(questions)
    assert (more.uncounted, more.problem) == (-2, "2 more are counted than are done.")
    await store(hall, stream, 5)
    less = await sums(questions)
    assert (less.uncounted, less.problem) == (1, "1 offsets are done, but not counted.")


async def test_a_scan_finds_what_was_counted_as_the_wrong_kind(
    hall: Hall, questions: Questions
) -> None:
    stream = await orders(hall)
    await consumed(hall, questions)
    await store(hall, stream, 7, filtered=2)
    assert (await sums(questions)).problem == ""
    found = await sums(questions, scan=True)
    assert found.problem == "7 are counted as acked, and 6 were found."


async def test_a_group_that_began_later_counts_from_there(hall: Hall, questions: Questions) -> None:
    (stream,) = await hall.plant.topic("orders", 1)
    await hall.plant.publish(stream, 5, "orders/eu")
    await hall.plant.group(GROUP)
    await hall.plant.publish(stream, 2, "orders/eu")
    found = await sums(questions, scan=True)
    assert (found.began, found.appended, found.waiting, found.problem) == (5, 2, 2, "")


@pytest.mark.parametrize("start", [None, AtOffset(5)])
async def test_a_storage_topic_that_is_younger_than_the_group_is_counted_from_its_beginning(
    hall: Hall, questions: Questions, start: StartPoint | None
) -> None:
    plant = hall.plant
    (stream,) = await plant.topic("orders", 1)
    await plant.publish(stream, 5, "orders/eu")
    topic_id = plant.catalogue.get("orders").topic_id
    plant.clock.ahead_ms = 60_000
    await plant.group(GROUP, start)
    await plant.catalogue.add_storage_topic(topic_id, 1, 2)
    await plant.catalogue.switch(topic_id, 1)
    for each in plant.catalogue.get("orders").producing.streams():
        await plant.publish(each, 3, "orders/eu")
    async with aclosing(questions.verify.ask("g", scan=True)) as answers:
        found = [each async for each in answers if isinstance(each, StreamSums)]
    assert [(each.began, each.appended, each.problem) for each in found] == [
        (5, 0, ""),
        (0, 3, ""),
        (0, 3, ""),
    ]


async def test_a_group_that_is_younger_than_a_storage_topic_adds_up_after_the_clock_was_set_back(
    hall: Hall, questions: Questions
) -> None:
    plant = hall.plant
    await plant.topic("orders", 1)
    topic_id = plant.catalogue.get("orders").topic_id
    await plant.catalogue.add_storage_topic(topic_id, 1, 2)
    await plant.catalogue.switch(topic_id, 1)
    plant.clock.ahead_ms = -3_600_000
    for each in plant.catalogue.get("orders").producing.streams():
        await plant.publish(each, 3, "orders/eu")
    await plant.group(GROUP, None)
    async with aclosing(questions.verify.ask("g")) as answers:
        found = [each async for each in answers if isinstance(each, StreamSums)]
    assert [(each.began, each.problem) for each in found] == [(0, ""), (3, ""), (3, "")]


async def test_what_an_operator_skips_is_counted_as_moved(
    hall: Hall, questions: Questions, operations: Operations
) -> None:
    await orders(hall)
    await operations.apply(SkipRecords("g", STREAM, 2, 5), caller=Caller("local:ana", "unix:"))
    found = await sums_once(questions, lambda found: found.counts.moved == 5)
    assert (found.waiting, found.problem) == (6, "")
    assert (await sums(questions, scan=True)).problem == ""


async def test_what_retention_took_before_it_was_done_is_gone_and_adds_up(
    hall: Hall, questions: Questions
) -> None:
    stream = await orders(hall)
    await hall.plant.log.trim(stream, 4)
    found = await sums(questions, scan=True)
    assert (found.gone, found.waiting, found.appended, found.problem) == (4, 7, 11, "")


async def test_one_scan_runs_at_a_time_and_tells_how_far_it_is(
    hall: Hall, questions: Questions, monkeypatch: pytest.MonkeyPatch
) -> None:
    await orders(hall)
    monkeypatch.setattr(verify, "SCAN_TOLD_EVERY_S", 0)
    async with aclosing(questions.verify.ask("g", scan=True)) as answers:
        assert await anext(answers) == ScanProgress(11, 11)
        with pytest.raises(Overloaded):
            await sums(questions, scan=True)
    assert (await sums(questions, scan=True)).scanned == Scanned()
    with pytest.raises(StreamNotRead):
        async with aclosing(questions.verify.ask("g", ["orders/0/7"])) as answers:
            await anext(answers)


async def laned(hall: Hall, *levels: tuple[Progress, Counts]) -> None:
    """Five records; four entries in the retry queue, one among the dead letters."""
    (stream,) = await hall.plant.topic("orders", 1)
    await hall.plant.publish(stream, 5, "orders/eu")
    group = await laned_group(hall.plant, GROUP)
    retry, dead = queues_of(hall.plant, group, stream)
    await hall.plant.publish(retry, 4)
    await hall.plant.publish(dead, 1)
    await store_lane(hall.plant, group, stream, levels)


TAKEN = (Progress(5), Counts(acked=2, retried=3))
TRIED = (Progress(1, ((2, 3),)), Counts(acked=1, retried=1))


async def test_what_is_retried_is_counted_and_so_is_what_its_queues_hold(
    hall: Hall, questions: Questions
) -> None:
    await laned(hall, TAKEN, TRIED, (Progress(0), Counts()))
    found = await sums(questions, scan=True)
    assert (found.counts, found.waiting, found.problem) == (Counts(acked=2, retried=3), 0, "")
    assert found.queues == (
        QueueSums(RETRY, 4, TRIED[1], waiting=2, uncounted=0),
        QueueSums(DEAD, 1, Counts(), waiting=1, uncounted=0),
    )


@pytest.mark.parametrize(
    ("retry", "dead", "problem"),
    [
        ((TRIED[0], Counts(acked=1)), (Progress(0), Counts()), "1 offsets in the retry queue are"),
        (TRIED, (Progress(0), Counts(acked=1)), "1 more in the dead letters are counted than"),
    ],
)
async def test_a_queue_that_does_not_add_up_is_named(
    hall: Hall,
    questions: Questions,
    retry: tuple[Progress, Counts],
    dead: tuple[Progress, Counts],
    problem: str,
) -> None:
    await laned(hall, TAKEN, retry, dead)
    assert (await sums(questions)).problem.startswith(problem)
