"""What waits in the queues of a group, over a real log; who leads the group is played."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from dss_core.answers import Reason
from dss_core.errors import GroupNotFound, IllegalArgument
from dss_core.filters import SubscriptionFilter
from dss_core.ids import StreamId, StreamName
from dss_core.lane import DEAD, RETRY
from dss_core.progress import Progress
from dss_core.routing import key_hash, partition_of
from dss_sim.played_groups import Plant
from dssd.leaders.declarations import AskedRetries
from dssd.leaders.lag import survey_from_view
from dssd.loop_yield import LoopTurn
from dssd.machines.leader.events import MemberView
from dssd.questions import queues
from dssd.questions import why as why_module
from dssd.questions.queues import EntriesAsked, QueueQuestions
from dssd.questions.record_look import Budget
from dssd.questions.stuck import Stuck, StuckQuestions
from dssd.questions.why import KeyAsked, WhyQuestions
from dssd.queues import looking
from dssd.queues.looking import Choice
from dssd.store.memory import MemoryStore
from support.queued_entries import Failed, LanesSeen, append_entries


@dataclass
class Lanes:
    """A group whose topic has two streams, with their queues."""

    plant: Plant
    seen: LanesSeen
    questions: QueueQuestions
    streams: tuple[StreamId, ...]

    async def dead(self, partition: int, *failed: Failed) -> None:
        """Have records die."""
        own = [replace(each, partition=partition) for each in failed]
        await append_entries(self.plant, self.queue(partition), own)

    def queue(self, partition: int, level: int = DEAD) -> StreamId:
        """A queue."""
        return self.seen.queue(self.streams[partition], level)


@pytest.fixture
async def lanes(tmp_path: Path) -> AsyncIterator[Lanes]:
    plant = Plant(tmp_path / "log", MemoryStore())
    await plant.start()
    streams = await plant.topic("orders", 2)
    group = await plant.groups.declare(
        SubscriptionFilter.parse("$share/g/orders/#"), retries=AskedRetries(5)
    )
    await plant.catalogue.make_queues(group.group_id, plant.catalogue.get("orders"))
    seen: Any = LanesSeen(plant, group)
    parts = (plant.groups, seen, plant.catalogue, plant.log)
    yield Lanes(plant, seen, QueueQuestions(*parts), streams)
    await plant.stop()


MEMBER = MemberView(b"b", b"s", "ann", 1, 0)
DEAD_OF_G = EntriesAsked("g", DEAD)


def small_answers(monkeypatch: pytest.MonkeyPatch, entries: int = 2) -> None:
    monkeypatch.setattr(queues, "ENTRIES_PAGE_MAX", entries)


async def test_a_dead_letter_is_told_with_its_origin_its_error_and_its_own_headers_only(
    lanes: Lanes,
) -> None:
    await lanes.dead(1, Failed(17, key=b"c-9"))
    page = await lanes.questions.entries(DEAD_OF_G)
    [found] = page.entries
    assert (found.stream, found.entry.origin_offset) == (StreamName("orders", 0, 1), 17)
    assert (found.key, found.entry.attempt) == (b"c-9", 5)
    assert (found.error, found.fingerprint) == ("no route to host", "abc0000000000001")
    assert found.headers == (("trace", b"t"),)
    assert (page.total, page.next_token) == (1, "")


async def test_what_the_queue_is_done_with_is_neither_told_nor_counted(lanes: Lanes) -> None:
    await lanes.dead(0, *map(Failed, range(6)))
    lanes.seen.done(lanes.queue(0), Progress(1).with_acked([(2, 4)]))
    page = await lanes.questions.entries(DEAD_OF_G)
    assert [each.entry.origin_offset for each in page.entries] == [1, 4, 5]
    assert page.total == 3
    errors = await lanes.questions.errors("g", DEAD)
    assert [each.count for each in errors.errors] == [3]


async def test_the_retry_queue_is_another_than_the_dead_letters(lanes: Lanes) -> None:
    await append_entries(lanes.plant, lanes.queue(0, RETRY), [Failed(3, attempt=2, due_ms=99)])
    [found] = (await lanes.questions.entries(EntriesAsked("g", RETRY))).entries
    assert (found.entry.attempt, found.entry.due_ms) == (2, 99)
    assert (await lanes.questions.entries(DEAD_OF_G)).entries == ()


async def test_pages_go_on_where_the_last_one_ended_over_all_streams(
    lanes: Lanes, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_answers(monkeypatch)
    await lanes.dead(0, *map(Failed, range(3)))
    await lanes.dead(1, *map(Failed, range(3)))
    token, seen = "", []
    while True:
        page = await lanes.questions.entries(DEAD_OF_G, token)
        assert len(page.entries) <= 2
        seen += [(each.stream.partition, each.entry.origin_offset) for each in page.entries]
        token = page.next_token
        if not token:
            break
    assert seen == [(partition, offset) for partition in (0, 1) for offset in range(3)]


async def test_a_call_reads_so_many_bytes_and_says_where_it_ended(
    lanes: Lanes, monkeypatch: pytest.MonkeyPatch
) -> None:
    for offset in range(4):
        await lanes.dead(0, Failed(offset))
    monkeypatch.setattr(queues, "QUEUE_LOOK_BYTES_MAX", 1)
    monkeypatch.setattr(looking, "LOOKED_AT_BYTES", 1)
    counts, token = [0, 0, 0, 0, 0], ""
    for call in range(len(counts)):
        page = await lanes.questions.errors("g", DEAD, token)
        counts[call] = sum(each.count for each in page.errors)
        assert page.total == 4
        token = page.next_token
        assert bool(token) == (call < 4)
    assert counts == [1, 1, 1, 1, 0]


async def test_entries_are_chosen_by_error_key_and_origin(lanes: Lanes) -> None:
    await lanes.dead(
        0,
        Failed(0),
        Failed(1, error="", error_type="", fingerprint=0, cause="ack wait", key=b"other"),
        Failed(2, fingerprint=0x1230000000000001),
    )
    await lanes.dead(1, Failed(2))

    async def offsets(asked: EntriesAsked) -> list[tuple[int, int]]:
        found = (await lanes.questions.entries(asked)).entries
        return [(each.stream.partition, each.entry.origin_offset) for each in found]

    one, two = (StreamName("orders", 0, partition) for partition in (0, 1))
    assert await offsets(EntriesAsked("g", DEAD, Choice(error="123"))) == [(0, 2)]
    assert await offsets(EntriesAsked("g", DEAD, Choice(error="ack wait"))) == [(0, 1)]
    assert await offsets(EntriesAsked("g", DEAD, Choice(key=b"other"))) == [(0, 1)]
    assert await offsets(EntriesAsked("g", DEAD, Choice(stream=two))) == [(1, 2)]
    assert await offsets(EntriesAsked("g", DEAD, Choice(stream=one, offset=2))) == [(0, 2)]


async def test_entries_are_chosen_by_member_attempts_and_the_time_they_came(lanes: Lanes) -> None:
    await lanes.dead(0, Failed(0, client_id="ann", attempt=1), Failed(1, client_id="ben"))
    [first, _] = (await lanes.questions.entries(DEAD_OF_G)).entries
    at_us = first.entered_at_us

    async def offsets(choice: Choice) -> list[int]:
        found = (await lanes.questions.entries(EntriesAsked("g", DEAD, choice))).entries
        return [each.entry.origin_offset for each in found]

    assert await offsets(Choice(client_id="ben")) == [1]
    assert await offsets(Choice(attempt=2)) == [1]
    assert await offsets(Choice(start_us=at_us)) == [0, 1]
    assert await offsets(Choice(end_us=at_us)) == []


async def test_what_was_brought_forward_is_due_and_the_others_are_as_they_say(
    lanes: Lanes,
) -> None:
    queue = lanes.queue(0, RETRY)
    waiting = [Failed(at, due_ms=9_000_000_000_000) for at in (0, 1)]
    await append_entries(lanes.plant, queue, waiting)
    lanes.seen.hurry(queue, ((1, 2),))
    found = (await lanes.questions.entries(EntriesAsked("g", RETRY))).entries
    assert [each.entry.due_ms < 9_000_000_000_000 for each in found] == [False, True]


async def test_keys_are_counted_with_the_first_of_each_that_failed(
    lanes: Lanes, monkeypatch: pytest.MonkeyPatch
) -> None:
    await lanes.dead(0, Failed(4, key=b"ann"), Failed(5, key=b"ann", error="later"))
    await lanes.dead(1, Failed(6, key=None, fingerprint=0x1230000000000001))
    page = await lanes.questions.keys("g", DEAD)
    assert [(each.key, each.count, each.stream, each.offset) for each in page.keys] == [
        (b"ann", 2, "orders/0/0", 4),
        (None, 1, "orders/0/1", 6),
    ]
    assert (page.total, page.keys[0].error) == (3, "no route to host")
    [other] = (await lanes.questions.keys("g", DEAD, "123")).keys
    assert (other.key, other.fingerprint) == (None, "1230000000000001")
    monkeypatch.setattr(queues, "ENTRIES_COUNTED_MAX", 1)
    monkeypatch.setattr(looking, "LOOKED_AT_BYTES", 1)
    first = await lanes.questions.keys("g", DEAD)
    assert first.next_token
    [rest] = (await lanes.questions.keys("g", DEAD, "", first.next_token)).keys
    assert rest.key is None


async def test_what_only_follows_is_the_last_of_errors_and_each_has_an_example(
    lanes: Lanes,
) -> None:
    follows = Failed(0, error="", error_type="", fingerprint=0, cause="follows", attempt=0)
    await lanes.dead(0, *(replace(follows, offset=at) for at in range(3)), Failed(9))
    told = (await lanes.questions.errors("g", DEAD)).errors
    assert [(each.count, each.cause, each.offset) for each in told] == [
        (1, "refused", 9),
        (3, "follows", 2),
    ]
    assert {each.stream for each in told} == {"orders/0/0"}
    assert all(0 < each.oldest_us <= each.newest_us for each in told)


async def test_the_newest_of_all_streams_come_in_the_order_of_their_death(lanes: Lanes) -> None:
    for offset in range(4):
        await lanes.dead(offset % 2, Failed(offset))
    page = await lanes.questions.newest(DEAD_OF_G, 3)
    assert [each.entry.origin_offset for each in page.entries] == [1, 2, 3]
    assert (page.total, page.next_token) == (4, "")
    assert len((await lanes.questions.newest(DEAD_OF_G, 9)).entries) == 4


async def test_the_newest_behind_holes_are_as_many_as_were_asked_for(lanes: Lanes) -> None:
    await lanes.dead(0, *map(Failed, range(8)))
    lanes.seen.done(lanes.queue(0), Progress(0).with_acked([(3, 7)]))
    page = await lanes.questions.newest(DEAD_OF_G, 3)
    assert [each.entry.origin_offset for each in page.entries] == [1, 2, 7]


async def test_errors_are_counted_by_fingerprint_and_those_without_one_by_cause(
    lanes: Lanes,
) -> None:
    nothing = Failed(0, error="", error_type="", fingerprint=0)
    await lanes.dead(0, replace(nothing, cause="died"), replace(nothing, cause="ack wait"))
    await lanes.dead(1, Failed(1, error="id 7 unknown"), Failed(2, error="id 8 unknown"))
    told = (await lanes.questions.errors("g", DEAD)).errors
    assert [(each.count, each.error or each.cause) for each in told] == [
        (2, "id 8 unknown"),
        (1, "died"),
        (1, "ack wait"),
    ]


async def test_a_group_without_queues_has_no_entries(lanes: Lanes) -> None:
    await lanes.plant.group("$share/plain/orders/#")
    plain = QueueQuestions(
        lanes.plant.groups, lanes.plant.registry, lanes.plant.catalogue, lanes.plant.log
    )
    page = await plain.entries(EntriesAsked("plain", DEAD))
    assert (page.entries, page.total, page.next_token) == ((), 0, "")


async def test_a_token_of_nobody_is_refused(lanes: Lanes) -> None:
    for token in ("x", "1/2", "1/2/-3", "1/2/3/4", f"1/2/{'9' * 30}", "cut"):
        with pytest.raises(IllegalArgument, match="page_token"):
            await lanes.questions.entries(DEAD_OF_G, token)


async def test_an_unknown_group_is_refused(lanes: Lanes) -> None:
    with pytest.raises(GroupNotFound):
        await lanes.questions.errors("nobody", DEAD)


def why(lanes: Lanes) -> WhyQuestions:
    plant: Any = lanes.plant
    seen: Any = lanes.seen
    nobody: Any = Nobody()
    return WhyQuestions(
        plant.groups, seen, plant.catalogue, plant.log, nobody, plant.clock, str, lanes.questions
    )


class Nobody:
    """No client has anything."""

    def held(self, *asked: object) -> None:
        return None


async def test_a_record_that_failed_waits_for_its_next_attempt_or_is_a_dead_letter(
    lanes: Lanes,
) -> None:
    now_ms = lanes.plant.clock.wall_ms()
    await lanes.plant.publish(lanes.streams[0], 4)
    retry = lanes.queue(0, RETRY)
    waiting = Failed(1, attempt=2, due_ms=now_ms + 40_000)
    await append_entries(lanes.plant, retry, [replace(waiting, attempt=1), waiting])
    lanes.seen.done(retry, Progress(1))
    lanes.seen.done(lanes.streams[0], Progress(3))
    await lanes.dead(0, Failed(2, error="no such customer", error_type=""))

    async def reason(offset: int) -> Reason:
        [found] = (await why(lanes).of_offset("g", "orders/0/0", offset)).records
        return found.reason

    retrying, dead = await reason(1), await reason(2)
    assert (retrying.code, retrying.attempt, retrying.until_ms) == ("retrying", 2, now_ms + 40_000)
    assert retrying.sentence.startswith("It failed 2 of 5 times and is due in ")
    assert retrying.sentence.endswith("; the last error: OSError: no route to host.")
    assert (dead.code, dead.attempt) == ("dead", 5)
    assert dead.sentence.endswith("the last error: no such customer.")
    assert dead.command == "dssctl dlq peek 'g@orders/#' orders/0/0@2"
    assert (await reason(3)).code == "no-members"


async def test_the_records_of_a_key_that_failed_are_told_before_those_that_wait(
    lanes: Lanes,
) -> None:
    router = lanes.plant.catalogue.get("orders").router
    partition = partition_of(router, key_hash(b"c-1"), 2, 1)
    await lanes.plant.publish(lanes.streams[partition], 4, keys=[b"c-1"] * 4)
    await lanes.dead(partition, Failed(2, key=b"c-1"), Failed(1, key=b"c-1"), Failed(0, key=b"no"))
    lanes.seen.done(lanes.streams[partition], Progress(3))
    answer = await why(lanes).of_key("g", KeyAsked(b"c-1"))
    told = [(each.offset, each.reason.code) for each in answer.records]
    assert told == [(1, "dead"), (2, "dead"), (3, "no-members")]
    assert answer.next_command == ""


async def test_a_look_that_did_not_see_all_of_the_queues_says_so(
    lanes: Lanes, monkeypatch: pytest.MonkeyPatch
) -> None:
    await lanes.plant.publish(lanes.streams[0], 2, keys=[b"c-1", b"c-1"])
    await lanes.dead(0, Failed(5))
    await lanes.dead(0, Failed(0))
    lanes.seen.done(lanes.streams[0], Progress(2))
    monkeypatch.setattr(why_module, "Budget", lambda: Budget(1))
    monkeypatch.setattr(looking, "LOOKED_AT_BYTES", 1)
    [found] = (await why(lanes).of_offset("g", "orders/0/0", 0)).records
    assert "not all entries were looked through" in found.reason.sentence
    key = KeyAsked(b"c-1", stream="orders/0/0")
    answer = await why(lanes).of_key("g", key)
    assert answer.next_command == "dssctl dlq ls 'g@orders/#' --key c-1"


async def test_a_retry_queue_whose_oldest_record_should_have_come_long_ago_is_stuck(
    lanes: Lanes,
) -> None:
    plant = lanes.plant
    await plant.publish(lanes.streams[0], 1)
    lanes.seen.done(lanes.streams[0], Progress(1))
    now_ms = plant.clock.wall_ms()
    due = Failed(0, attempt=1, due_ms=now_ms - 61_000)
    await append_entries(plant, lanes.queue(0, RETRY), [due])

    async def stuck(after_ms: int) -> list[Stuck]:
        group = plant.groups.find("g")
        parts: Any = (plant.groups, plant.registry, NoOperations(), NotSampled(), why(lanes))
        made: Any = StuckQuestions
        questions = made(*parts, lanes.questions, plant.clock)
        view = await lanes.seen.view(group, LoopTurn())
        view = replace(view, members=(MEMBER,), streams=view.streams[:1])
        view = replace(view, streams=(replace(view.streams[0], state="granted"),))
        survey = await survey_from_view(view, group, plant.catalogue, plant.log, now_ms, LoopTurn())
        found: list[Stuck] = await questions.of_group(group, survey, after_ms)
        return found

    [found] = await stuck(60_000)
    assert (found.stream, found.reason.code, found.lag) == ("orders/0/0", "retrying", 1)
    assert "failed 1 of 5 times and is due now" in found.reason.sentence
    assert not await stuck(120_000)


class NoOperations:
    """Nobody changed anything."""

    def newest(self) -> list[None]:
        return []


class NotSampled:
    """Nobody has looked."""

    def still_ms(self, *asked: object) -> int | None:
        return None
