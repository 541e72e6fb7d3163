"""Why a record of an ordered group waits for its key, over a real log with nobody who leads it."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from dss_core.answers import Reason
from dss_core.filters import SubscriptionFilter
from dss_core.ids import StreamId, StreamName
from dss_core.lane import DEAD, RETRY
from dss_core.progress import Progress
from dss_sim.played_groups import Plant
from dssd.leaders.declarations import AskedRetries
from dssd.questions.key_reasons import behind_first, key_held, of_record
from dssd.questions.queues import QueueQuestions
from dssd.questions.reasons import Now, RecordAsked
from dssd.questions.record_look import Budget
from dssd.questions.why import KeyAsked, WhyQuestions
from dssd.store.memory import MemoryStore
from dssd.store.rows import GroupRow
from support.queued_entries import Failed, LanesSeen, append_entries

KEY = b"ida"
NOW = Now(1_000, 0)


class Nobody:
    """No client has anything."""

    def held(self, *asked: object) -> None:
        return None


@dataclass
class Laned:
    """Six records of one key in one stream."""

    plant: Plant
    seen: LanesSeen
    group: GroupRow
    stream: StreamId

    async def put(self, level: int, *failed: Failed) -> None:
        """Have entries in a queue."""
        own = [replace(each, key=KEY) for each in failed]
        await append_entries(self.plant, self.seen.queue(self.stream, level), own)

    def why(self) -> WhyQuestions:
        """The questions."""
        plant, seen, nobody = self.plant, self.seen, Nobody()
        anything: Any = seen
        queues = QueueQuestions(plant.groups, anything, plant.catalogue, plant.log)
        clients: Any = nobody
        return WhyQuestions(
            plant.groups, anything, plant.catalogue, plant.log, clients, plant.clock, str, queues
        )

    async def of_key(self) -> dict[int, Reason]:
        """What is told of each record of the key."""
        answer = await self.why().of_key("g", KeyAsked(KEY))
        return {each.offset: each.reason for each in answer.records}

    async def of_offset(self, offset: int) -> Reason:
        """What is told of one record."""
        [found] = (await self.why().of_offset("g", "orders/0/0", offset)).records
        return found.reason


async def opened(path: Path, on_dead_letter: str) -> Laned:
    plant = Plant(path / "log", MemoryStore())
    await plant.start()
    [stream] = await plant.topic("orders", 1)
    retries = AskedRetries(5, ordered=True, on_dead_letter=on_dead_letter)
    parsed = SubscriptionFilter.parse("$share/g/orders/#")
    group = await plant.groups.declare(parsed, retries=retries)
    await plant.catalogue.make_queues(group.group_id, plant.catalogue.get("orders"))
    await plant.publish(stream, 6, keys=[KEY] * 6)
    return Laned(plant, LanesSeen(plant, group), group, stream)


@pytest.fixture(params=["block", "skip"])
async def lane(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Laned]:
    lane = await opened(tmp_path, request.param)
    yield lane
    await lane.plant.stop()


async def test_the_first_of_a_key_says_when_it_comes_and_the_others_that_they_wait_for_it(
    lane: Laned,
) -> None:
    lane.seen.done(lane.stream, Progress(4))
    due_ms = lane.plant.clock.wall_ms() + 40_000
    follows = Failed(0, "", "", 0, attempt=0, cause="follows")
    await lane.put(RETRY, Failed(1, attempt=2, due_ms=due_ms), replace(follows, offset=2))
    told = await lane.of_key()
    assert (told[1].code, told[1].attempt, told[1].until_ms) == ("retrying", 2, due_ms)
    goes = "waits among the dead letters with it"
    if lane.group.on_dead_letter == "skip":
        goes = "goes on without it"
    assert told[1].sentence.endswith(
        "; the last error: OSError: no route to host. 1 later record of its key waits for it. "
        f"After 3 more failures it is dead, and its key {goes}."
    )
    assert (told[2].code, told[2].blocked_by, told[2].until_ms) == ("behind-key", 1, due_ms)
    assert told[2].sentence.startswith(
        "It waits in the retry queue for the record at 1, the first of its key, which failed 2 of 5"
    )
    assert told[2].command == "dssctl groups why 'g@orders/#' --stream orders/0/0 --offset 1"
    assert told[4].code == "no-members", "what hinders all of the stream is told first"
    assert (await lane.of_offset(2)).sentence == told[2].sentence
    lane.seen.done(lane.seen.queue(lane.stream, RETRY), Progress(1))
    assert (await lane.of_key())[2].sentence.startswith("It waited behind a record of its key")


async def test_a_record_that_was_brought_back_is_told_where_it_is_though_nobody_reported_that(
    lane: Laned,
) -> None:
    lane.seen.done(lane.stream, Progress(6))
    await lane.put(DEAD, Failed(1))
    for level, end in ((RETRY, 0), (DEAD, 1)):
        lane.seen.reported(lane.seen.queue(lane.stream, level), end)
    for level, source in ((RETRY, (DEAD, 0)), (DEAD, (RETRY, 0)), (RETRY, (DEAD, 1))):
        went_on = Failed(1, attempt=1, source_level=source[0], source_offset=source[1])
        await lane.put(level, went_on)
        [told] = (await lane.why().of_key("g", KeyAsked(KEY))).records
        assert (told.offset, told.reason.code) == (1, "dead" if level == DEAD else "retrying")


async def test_a_dead_letter_holds_up_its_key_only_where_it_blocks(lane: Laned) -> None:
    lane.seen.done(lane.stream, Progress(4))
    await lane.put(DEAD, Failed(1))
    follows = Failed(2, "", "", 0, attempt=0, cause="follows")
    blocks = lane.group.on_dead_letter == "block"
    await lane.put(DEAD if blocks else RETRY, follows, replace(follows, offset=3))
    told = await lane.of_key()
    assert told[1].code == "dead"
    if not blocks:
        assert told[1].command.startswith("dssctl dlq peek")
        assert (told[2].code, told[3].blocked_by) == ("retrying", 2)
        return
    assert told[1].sentence.endswith(
        "OSError: no route to host. 2 later records of its key wait for it. The key waits until it "
        "is redriven or discarded."
    )
    assert told[1].command == "dssctl dlq redrive 'g@orders/#' --key ida"
    assert (told[3].code, told[3].blocked_by) == ("behind-key", 1)
    assert "It waits among the dead letters for the record at 1" in told[3].sentence
    assert told[3].command == told[1].command


async def test_what_has_not_come_yet_waits_for_its_key_where_nothing_else_hinders_it(
    tmp_path: Path,
) -> None:
    lane = await opened(tmp_path, "block")
    await lane.put(DEAD, Failed(1))
    found = await lane.why()._queues.in_lane(
        await lane.seen.stream(lane.group, lane.stream),
        lane.plant.catalogue.name_of(lane.stream),
        Budget(),
        lambda each: each.key == KEY,
    )
    held = key_held(lane.group, found)
    assert held is not None
    asked = RecordAsked(lane.group, "orders/0/0", 5)
    turn, paused = Reason("behind", "ann has not come to it."), Reason("paused", "The group is.")
    reason = of_record(asked, turn, held, NOW)
    assert (reason.code, reason.blocked_by) == ("behind-key", 1)
    assert reason.sentence.startswith("It comes after the record at 1, the first of its key, which")
    assert of_record(asked, paused, held, NOW) == paused
    assert of_record(replace(asked, offset=0), turn, held, NOW) == turn
    assert key_held(replace(lane.group, ordered=False), found) is None
    redriven = of_record(asked, turn, replace(held, redriven_by=7), NOW)
    assert "which operation 7 brings back" in redriven.sentence
    await lane.plant.stop()


async def test_what_waits_behind_its_key_is_not_overdue_but_what_it_waits_for_may_be(
    tmp_path: Path,
) -> None:
    lane = await opened(tmp_path, "block")
    follows = Failed(2, "", "", 0, attempt=0, cause="follows")
    await lane.put(RETRY, follows, replace(follows, offset=3))
    view, name = await lane.seen.stream(lane.group, lane.stream), "orders/0/0"
    queues, parsed = lane.why()._queues, StreamName.parse(name)
    assert await queues.first_due(view, parsed, ordered=True) is None
    await lane.put(RETRY, Failed(1, attempt=2, due_ms=77))
    found = await queues.first_due(view, parsed, ordered=True)
    assert found is not None
    assert (found.entry.origin_offset, found.entry.due_ms) == (1, 77)
    found = await queues.first_due(view, parsed)
    assert found is not None
    assert found.entry.due_ms == 0
    await lane.plant.stop()


def test_what_is_behind_an_open_record_of_its_key_names_that() -> None:
    group = GroupRow(7, "g", "orders/#", "shared", "", None, 1, 0, 0, ordered=True)
    asked = RecordAsked(group, "orders/0/0", 9)
    turn, out = Reason("behind", "ann has not come to it."), Reason("handed-out", "It is out.")
    told = behind_first(asked, turn, 4, out)
    assert (told.code, told.blocked_by) == ("behind-key", 4)
    assert told.command.endswith("--offset 4")
    assert behind_first(asked, turn, 9, out) == turn
    assert behind_first(asked, turn, 4, Reason("no-members", "Nobody.")) == turn
    plain = RecordAsked(replace(group, ordered=False), "orders/0/0", 9)
    assert behind_first(plain, turn, 4, out) == turn
