"""Events are told, kept, folded, bounded, and read again by number."""

import asyncio
import logging
import re
import shutil
from pathlib import Path
from typing import Protocol

import pytest

from dss_core.errors import DiskFull, DssError, Stopping
from dssd.clock import Clock
from dssd.events.events import Events
from dssd.events.folding import EVENT_FOLD_MS_MAX, EVENT_REPEAT_MS
from dssd.events.kinds import CONSUMER_SLOW, KINDS, RECORDS_PASSED, RETENTION_LOST
from dssd.events.limits import EVENT_SENTENCE_BYTES_MAX
from dssd.events.model import Event, KeptEvent, Severity
from dssd.events.selection import EventSelection
from dssd.events.writer import EVENTS_AGE_MS
from dssd.store.port import Put, Store
from dssd.store.rows import EventRow
from dssd.store.sqlite import SqliteStore

ALL = EventSelection()


class Moved(Protocol):
    passed_ms: int


class Wilful(Store, Protocol):
    refusal: DssError | None
    gate: asyncio.Event
    asked: asyncio.Event
    commits: int


def slow(client: str = "c", sentence: str = "It stopped reading.") -> Event:
    return Event(CONSUMER_SLOW, client, sentence)


def passed(first: int, end: int, group: str = "g@orders/#") -> Event:
    fields = {"group": group, "first": str(first), "end": str(end)}
    return Event(RECORDS_PASSED, "orders/0/3", f"It goes on at {end}.", fields)


def lost(records: int) -> Event:
    return Event(RETENTION_LOST, "g@orders/#", f"{records} records go.")


async def kept(events: Events, selection: EventSelection = ALL) -> list[KeptEvent]:
    return list((await events.first_after(selection, 0, 100_000)).events)


async def subjects(events: Events, selection: EventSelection = ALL) -> list[str]:
    return [event.subject for event in await kept(events, selection)]


async def test_numbers_rise_and_go_on_after_a_restart(
    store: Store, clock: Clock, events: Events
) -> None:
    assert [await events.tell(slow(client)) for client in "abc"] == [1, 2, 3]
    async with await Events.open(store, clock) as again:
        assert again.last_number == 3
        assert await again.tell(slow("d")) == 4
        assert await subjects(again) == ["a", "b", "c", "d"]


async def test_the_last_error_about_something_is_at_hand_and_known_after_a_restart(
    store: Store, clock: Clock, events: Events
) -> None:
    for event in (lost(3), lost(5), slow("g@orders/#")):
        await events.tell(event)
    now_ms = clock.wall_ms()
    async with await Events.open(store, clock) as again:
        for known in (events, again):
            assert known.error_of("g@orders/#", now_ms) == "5 records go."
            assert known.error_of("g@orders/#", now_ms + 1) == known.error_of("h@#", 0) == ""


async def test_what_is_told_is_on_the_disk_when_tell_returns(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "live").mkdir()
    store = await SqliteStore.open(tmp_path / "live" / "store.sqlite")
    async with await Events.open(store, clock) as events:
        for number in range(1, 4):
            assert await events.tell(passed(number, number + 1)) == number
            image = tmp_path / f"image-{number}"
            shutil.copytree(tmp_path / "live", image)
            left = await SqliteStore.open(image / "store.sqlite")
            found = await kept(await Events.open(left, clock))
            assert [each.fields["first"] for each in found] == [
                str(each) for each in range(1, number + 1)
            ]
            await left.close()
    await store.close()


async def test_tell_does_not_return_while_the_commit_is_under_way(
    store: Wilful, events: Events
) -> None:
    store.gate.clear()
    store.asked.clear()
    telling = asyncio.create_task(events.tell(slow()))
    await store.asked.wait()
    assert not telling.done()
    assert await kept(events) == []
    store.gate.set()
    assert await telling == 1


async def test_what_is_noted_is_kept_soon(events: Events) -> None:
    watching = events.watch(ALL, 0)
    events.note(Event(CONSUMER_SLOW, "c", "It stopped.", {"unread_bytes": "5"}))
    event = await anext(watching)
    assert (event.number, event.code, event.severity) == (1, "consumer.slow", Severity.WARNING)
    assert (event.subject, event.sentence, event.fields) == (
        "c",
        "It stopped.",
        {"unread_bytes": "5"},
    )
    assert (event.at_ms, event.times, event.last_at_ms) == (1_800_000_000_000, 1, 1_800_000_000_000)
    await watching.aclose()


async def test_what_is_noted_before_the_end_is_kept(store: Store, clock: Clock) -> None:
    async with await Events.open(store, clock) as events:
        events.note(slow("last"))
    assert await subjects(await Events.open(store, clock)) == ["last"]
    with pytest.raises(Stopping):
        await events.tell(slow("later"))


async def test_an_end_during_a_commit_does_not_wait_for_more(store: Wilful, clock: Clock) -> None:
    async with asyncio.timeout(5):
        async with await Events.open(store, clock) as events:
            store.gate.clear()
            store.asked.clear()
            telling = asyncio.create_task(events.tell(slow()))
            await store.asked.wait()
            asyncio.get_running_loop().call_soon(store.gate.set)
        assert await telling == 1


async def test_an_event_is_one_line_of_the_log_whatever_a_client_is_called(
    events: Events, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await events.tell(slow("c\nFAKE line"))
    await events.tell(slow("c\nFAKE line"))
    assert [record.getMessage() for record in caplog.records] == [
        "c\\x0aFAKE line: It stopped reading."
    ]
    assert caplog.records[0].levelno == logging.WARNING


# Folding


async def test_the_same_again_within_its_time_is_counted(clock: Moved, events: Events) -> None:
    for turn in range(5):
        assert await events.tell(slow("c", f"{turn} bytes.")) == 1
        clock.passed_ms += EVENT_REPEAT_MS - 1
    [event] = await kept(events)
    assert (event.times, event.sentence) == (5, "4 bytes.")
    assert event.last_at_ms - event.at_ms == 4 * (EVENT_REPEAT_MS - 1)
    clock.passed_ms += 1
    assert await events.tell(slow()) == 2, "its time is over"
    assert [each.times for each in await kept(events)] == [5, 1]


async def test_a_storm_costs_a_row_and_a_few_commits(store: Wilful, events: Events) -> None:
    for _ in range(10_000):
        events.note(slow())
    assert await events.tell(slow()) == 1
    [event] = await kept(events)
    assert event.times == 10_001
    assert store.commits <= 2


async def test_other_subjects_and_other_groups_are_not_folded(events: Events) -> None:
    for subject, group in [("a", "g"), ("b", "g"), ("a", "h")]:
        await events.tell(Event(CONSUMER_SLOW, subject, "It stopped.", {"group": group}))
    assert len(await kept(events)) == 3


async def test_what_goes_on_repeating_is_kept_anew_after_an_hour(
    clock: Moved, events: Events
) -> None:
    end_ms = clock.passed_ms + EVENT_FOLD_MS_MAX
    while clock.passed_ms <= end_ms:
        last = await events.tell(slow())
        clock.passed_ms += EVENT_REPEAT_MS // 2
    assert last == 2


async def test_each_passed_range_is_kept_once_and_none_is_lost(
    store: Store, clock: Moved, events: Events
) -> None:
    for _ in range(3):
        assert await events.tell(passed(0, 5)) == 1
        assert await events.tell(passed(5, 9)) == 2
        assert await events.tell(passed(0, 5, "other@orders/#")) == 3
        clock.passed_ms += EVENT_FOLD_MS_MAX
    assert [each.times for each in await kept(events)] == [1, 1, 1]
    async with await Events.open(store, Clock()) as again:
        assert await again.tell(passed(5, 9)) == 2, "a restart knows it too"


async def test_a_range_that_two_tell_at_once_is_durable_for_both(
    store: Wilful, events: Events
) -> None:
    store.gate.clear()
    store.asked.clear()
    first = asyncio.create_task(events.tell(passed(0, 5)))
    await store.asked.wait()
    second = asyncio.create_task(events.tell(passed(0, 5)))
    store.gate.set()
    assert (await first, await second) == (1, 1)
    assert len(await kept(events)) == 1


async def test_what_is_kept_each_time_is_never_folded(events: Events) -> None:
    assert [await events.tell(lost(records)) for records in (5, 5, 7)] == [1, 2, 3]


async def test_what_is_told_again_while_it_is_written_is_counted(
    store: Wilful, events: Events
) -> None:
    store.gate.clear()
    store.asked.clear()
    events.note(slow())
    await store.asked.wait()
    again = asyncio.create_task(events.tell(slow()))
    await asyncio.sleep(0)
    store.gate.set()
    assert await again == 1
    [event] = await kept(events)
    assert event.times == 2


# A store that refuses


async def test_a_full_disk_fails_tell_and_ends_nothing(store: Wilful, events: Events) -> None:
    store.refusal = DiskFull()
    with pytest.raises(DiskFull):
        await events.tell(passed(0, 5))
    with pytest.raises(DiskFull):
        await events.tell(slow())
    store.refusal = None
    assert await events.tell(passed(0, 5)) == 1, "it was not taken for told"
    assert await events.tell(slow()) == 2
    assert [each.times for each in await kept(events)] == [1, 1]


@pytest.mark.usefixtures("no_rest")
async def test_what_was_noted_on_a_full_disk_is_kept_when_there_is_room(
    store: Wilful, events: Events
) -> None:
    store.refusal = DiskFull()
    for client in "abc":
        events.note(slow(client))
    with pytest.raises(DiskFull):
        await events.tell(slow("told"))
    store.refusal = None
    await events.tell(slow("d"))
    assert await subjects(events) == ["a", "b", "c", "d"]


async def test_beyond_its_bound_the_oldest_noted_are_dropped_and_counted(
    store: Wilful, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dssd.events.writer.EVENTS_WAITING_MAX", 3)
    store.refusal = DiskFull()
    for number in range(8):
        events.note(slow(str(number)))
    with pytest.raises(DiskFull):
        await events.tell(slow("told"))
    store.refusal = None
    events.note(slow("8"))
    await events.tell(lost(1))
    found = await kept(events)
    assert [each.subject for each in found] == ["6", "7", "8", "g@orders/#", "events"]
    assert found[-1].fields == {"events": "6"}
    assert [each.number for each in found] == [1, 2, 3, 4, 5]


async def test_a_caller_that_goes_away_disturbs_nobody(store: Wilful, events: Events) -> None:
    store.gate.clear()
    telling = asyncio.create_task(events.tell(slow("gone")))
    await store.asked.wait()
    telling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await telling
    store.gate.set()
    await events.tell(slow("stays"))
    assert await subjects(events) == ["gone", "stays"]


# Bounds


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty events at most, four in a commit."""
    monkeypatch.setattr("dssd.events.trimming.EVENTS_MAX", 20)
    for module in ("trimming", "writer"):
        monkeypatch.setattr(f"dssd.events.{module}.EVENTS_TRIM_ROWS", 4)
    monkeypatch.setattr("dssd.events.writer.EVENTS_BATCH_MAX", 3)


@pytest.mark.usefixtures("small")
async def test_the_oldest_go_when_there_are_too_many(events: Events) -> None:
    for number in range(100):
        await events.tell(slow(str(number)))
        assert len(await kept(events)) <= 20
    found = await kept(events)
    assert [each.number for each in found] == list(range(101 - len(found), 101))
    assert len(found) >= 12


@pytest.mark.usefixtures("small")
async def test_many_at_once_are_bounded_too(events: Events) -> None:
    for number in range(100):
        events.note(slow(str(number)))
    await events.tell(slow("end"))
    found = await kept(events)
    assert 12 <= len(found) <= 20
    assert found[-1].subject == "end"


@pytest.mark.usefixtures("small")
async def test_what_repeats_an_event_that_was_removed_is_kept_anew(events: Events) -> None:
    assert await events.tell(slow("again")) == 1
    for number in range(30):
        await events.tell(slow(str(number)))
    assert await events.tell(slow("again")) == 32
    assert (await kept(events))[0].number > 1


async def test_what_is_too_old_goes_but_the_newest_stays_for_its_number(
    store: Store, clock: Moved
) -> None:
    old = EventRow(1, 0, "consumer.slow", "warning", "old", "It stopped.", "{}", 1, 0)
    rows = [Put(old), *(Put(EventRow(n, *old_fields(old))) for n in range(2, 900))]
    await store.commit(rows)
    clock.passed_ms += EVENTS_AGE_MS
    async with await Events.open(store, as_clock(clock)) as events:
        events.note(slow("new"))
    again = await Events.open(store, as_clock(clock))
    assert await subjects(again) == ["new"]
    assert again.last_number == 900


async def test_the_last_event_is_kept_however_old(store: Store, clock: Moved) -> None:
    await store.commit([Put(EventRow(7, 0, "c", "info", "s", "It was.", "{}", 1, 0))])
    async with await Events.open(store, as_clock(clock)) as events:
        pass
    assert (await Events.open(store, as_clock(clock))).last_number == events.last_number == 7


def old_fields(row: EventRow) -> tuple[int, str, str, str, str, str, int, int]:
    return row.at_ms, row.code, row.severity, row.subject, row.sentence, row.fields, 1, 0


def as_clock(clock: Moved) -> Clock:
    assert isinstance(clock, Clock)
    return clock


async def test_long_and_strange_texts_are_cut_and_kept(tmp_path: Path, clock: Clock) -> None:
    store = await SqliteStore.open(tmp_path / "store.sqlite")
    async with await Events.open(store, clock) as events:
        await events.tell(
            Event(CONSUMER_SLOW, "\ud800" + "ä" * 2_000, "€" * 2_000, {"why": "x" * 9_000})
        )
        [event] = await kept(events)
    assert event.subject.startswith("?ä")
    assert event.sentence.endswith("€…")
    assert len(event.sentence.encode()) <= EVENT_SENTENCE_BYTES_MAX
    assert len(event.fields["why"]) < 300
    await store.close()


# Reading


@pytest.fixture
async def twenty_five(events: Events, monkeypatch: pytest.MonkeyPatch) -> Events:
    """Twenty-five events in pages of four."""
    monkeypatch.setattr("dssd.events.selection.EVENTS_PAGE_ROWS", 4)
    for number in range(1, 26):
        kind = RETENTION_LOST if number % 5 == 0 else CONSUMER_SLOW
        await events.tell(Event(kind, f"{'odd' if number % 2 else 'even'}/{number}", "It was so."))
    return events


@pytest.mark.parametrize("limit", [1, 3, 4, 5, 8, 25, 100])
async def test_the_last_ones_are_found_whatever_the_limit(twenty_five: Events, limit: int) -> None:
    found = await twenty_five.last_of(ALL, 1_000, limit)
    assert [each.number for each in found] == list(range(max(1, 26 - limit), 26))
    odd = await twenty_five.last_of(EventSelection(subject_prefix="odd/"), 1_000, limit)
    assert [each.number for each in odd] == list(range(1, 26, 2))[-limit:]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("limit", [1, 3, 9, 100])
async def test_the_last_ones_are_found_where_the_first_were_removed(
    twenty_five: Events, limit: int
) -> None:
    every = [each.number for each in await kept(twenty_five)]
    assert every[0] > 5
    assert [each.number for each in await twenty_five.last_of(ALL, 1_000, limit)] == every[-limit:]


@pytest.mark.parametrize("limit", [1, 3, 4, 5, 100])
async def test_pages_go_on_where_the_last_one_ended(twenty_five: Events, limit: int) -> None:
    selection = EventSelection(severity_min=Severity.ERROR)
    seen: list[int] = []
    after, whole = 0, False
    while not whole:
        page = await twenty_five.first_after(selection, after, limit)
        assert len(page.events) <= limit
        seen += [each.number for each in page.events]
        after, whole = page.last, page.is_whole
    assert seen == [5, 10, 15, 20, 25]


async def test_only_what_was_told_since_then_is_found(clock: Moved, events: Events) -> None:
    await events.tell(slow("before"))
    clock.passed_ms += EVENT_REPEAT_MS
    await events.tell(slow("after"))
    since = as_clock(clock).wall_ms()
    assert await subjects(events, EventSelection(since_ms=since)) == ["after"]
    assert await subjects(events, EventSelection(since_ms=since + 1)) == []


@pytest.mark.usefixtures("no_rest")
async def test_a_watch_resumes_behind_a_number_and_misses_nothing(events: Events) -> None:
    for client in "abc":
        await events.tell(slow(client))
    watching = events.watch(ALL, 1)
    assert [(await anext(watching)).subject for _ in range(2)] == ["b", "c"]
    await watching.aclose()
    await events.tell(slow("d"))
    events.note(slow("e"))
    again = events.watch(ALL, 3)
    assert [(await anext(again)).subject for _ in range(2)] == ["d", "e"]
    following = asyncio.create_task(anext(again))
    await events.tell(slow("f"))
    assert (await following).subject == "f"
    await again.aclose()


async def test_a_watcher_that_takes_nothing_holds_up_nobody(events: Events) -> None:
    watching = events.watch(ALL, 0)
    await events.tell(slow("first"))
    assert (await anext(watching)).subject == "first"
    for number in range(500):
        await events.tell(slow(str(number)))
    assert [int((await anext(watching)).subject) for _ in range(500)] == list(range(500))
    await watching.aclose()


async def test_a_watch_ends_with_the_daemon(events: Events) -> None:
    async def watch() -> None:
        async for _ in events.watch(ALL, 0):
            pass

    watching = asyncio.create_task(watch())
    await asyncio.sleep(0)
    events.stop()
    with pytest.raises(Stopping):
        await watching


def test_every_code_has_its_row_in_the_manual_and_no_other() -> None:
    manual = (Path(__file__).resolve().parents[3] / "docs" / "operations.md").read_text()
    rows = re.findall(r"^\| `(\w+\.\w+)` \| (\w+) \|", manual, re.MULTILINE)
    assert sorted(rows) == sorted((kind.code, kind.severity.word) for kind in KINDS)


def test_a_code_is_one_of_a_kind() -> None:
    assert len({kind.code for kind in KINDS}) == len(KINDS)
    for kind in KINDS:
        assert kind.code == kind.code.lower()
        assert "." in kind.code


async def test_a_draft_is_told_by_the_next_daemon_where_this_one_does_not(
    store: Store, clock: Clock
) -> None:
    async with await Events.open(store, clock) as events:
        first, second = events.draft(lost(1)), events.draft(lost(2))
        await store.commit([Put(first), Put(second)])
        await events.tell(slow("before"))
        assert await subjects(events) == ["before"]
    for _ in range(2):
        async with await Events.open(store, clock) as again:
            await again.tell(slow("after"))
            page = await kept(again, EventSelection(codes=frozenset({lost(1).kind.code})))
            assert [event.sentence for event in page] == ["1 records go.", "2 records go."]
    rows = [found.row for found in await store.scan(EventRow)]
    assert [row.number for row in rows] == list(range(1, len(rows) + 1))


async def test_a_draft_goes_with_the_commit_that_keeps_its_event(
    store: Wilful, clock: Clock
) -> None:
    async with await Events.open(store, clock) as events:
        draft = events.draft(lost(1))
        again = events.draft(lost(2), draft)
        await store.commit([Put(again)])
        store.refusal = DiskFull()
        events.note(lost(3), again)
        with pytest.raises(DiskFull):
            await events.tell(slow())
        store.refusal = None
    rows = [found.row for found in await store.scan(EventRow)]
    assert [(row.number, row.sentence) for row in rows] == [(1, "3 records go.")]


@pytest.mark.usefixtures("no_rest")
async def test_an_event_with_a_draft_is_not_dropped_however_many_wait(
    store: Wilful, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dssd.events.writer.EVENTS_WAITING_MAX", 2)
    async with await Events.open(store, clock) as events:
        for records in range(5):
            draft = events.draft(lost(records))
            await store.commit([Put(draft)])
            events.note(lost(records), draft)
    assert len(await store.scan(EventRow)) == 5


async def test_who_was_answered_finds_the_event_that_was_promised(
    store: Store, events: Events
) -> None:
    await events.tell(slow())  # so that the writer rests
    draft = events.draft(lost(1))
    await store.commit([Put(draft)])
    events.note(lost(1), draft)
    assert await subjects(events) == ["c", "g@orders/#"]
