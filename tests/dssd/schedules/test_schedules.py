"""Schedules as the daemon runs them: rows, operations, events, restarts, clocks that are set."""

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from dss_core.changes import (
    CreateSchedule,
    EditSchedule,
    PauseSchedule,
    RemoveSchedule,
    ResumeSchedule,
    RunTask,
    Undo,
)
from dss_core.errors import (
    DiskFull,
    NotUndoable,
    OperationEnded,
    OwnerRefused,
    ScheduleBusy,
    ScheduleNotFound,
)
from dssd.leaders.bans import ban_of
from dssd.operations.operations import Caller
from dssd.store.memory import MemoryStore
from dssd.store.port import Precondition, Put, Write
from dssd.store.schedule_rows import ScheduleRunRow
from support.played_schedules import HOUR_MS, MINUTE_MS, SUNDAY_NOON_MS, ScheduledWorks


async def test_a_run_is_an_operation_of_its_schedule_and_is_kept_with_what_it_said(
    works: ScheduledWorks,
) -> None:
    await works.scheduled(arguments=(("how", "well"),))
    works.pass_(60)
    [run] = await works.states("done")
    assert (run.due_ms, run.cause, run.attempt) == (SUNDAY_NOON_MS + HOUR_MS, "cron", 1)
    assert run.output == "it begins for the 1. time"
    assert works.work.begun == [{"how": "well"}]
    operation = await works.operations.whole(run.operation)
    assert (operation.kind, operation.principal) == ("tasks.run", "schedule:s")
    assert operation.reason == "run 1, due at 2026-11-22T13:00:00Z"
    assert json.loads(operation.after) == {"output": ["it begins for the 1. time"]}
    with pytest.raises(NotUndoable, match="stays done"):
        await works.operations.plan(Undo(operation.number))


async def test_a_schedule_acts_for_who_made_edited_or_resumed_it_last(
    works: ScheduledWorks,
) -> None:
    def whom() -> str:
        return works.schedules.view("s").row.principal

    bob = Caller("token:bob", "ipv4:192.0.2.1:7")
    await works.scheduled()
    assert whom() == works.ana.principal
    edit = await works.operations.apply(EditSchedule("s", retries=1), caller=bob)
    assert whom() == "token:bob"
    await works.apply(Undo(edit.number))
    assert whom() == works.ana.principal
    await works.operations.apply(PauseSchedule("s"), caller=bob)
    assert whom() == works.ana.principal, "it is not bob who lets it run"
    await works.operations.apply(ResumeSchedule("s"), caller=bob)
    assert whom() == "token:bob"
    run = await works.schedules.trigger("s")
    operation = await works.operations.whole(run.operation)
    assert operation.origin == "the daemon itself, for token:bob"


async def test_a_run_fails_where_whom_its_schedule_acts_for_may_not_any_more(
    works: ScheduledWorks,
) -> None:
    await works.scheduled()
    works.owner_refused = True
    works.pass_(60)
    [run] = await works.states("failed")
    assert (run.operation, run.failure) == (0, f"It acts for {works.ana.principal}, who may not.")
    with pytest.raises(OwnerRefused):
        await works.schedules.trigger("s")
    assert works.work.begun == []
    works.owner_refused = False
    works.pass_(60)
    await works.states("failed", "done")


async def test_a_run_that_is_under_way_shows_how_far_it_is(works: ScheduledWorks) -> None:
    await works.scheduled()
    works.work.gate.clear()
    await works.schedules.trigger("s")
    await works.under_way()
    [run] = await works.runs()
    assert run.output == "it begins for the 1. time\nhalf of it is done"
    works.work.gate.set()
    [run] = await works.states("done")
    assert run.output == "it begins for the 1. time"


async def test_a_schedule_that_works_leaves_the_events_alone(works: ScheduledWorks) -> None:
    await works.scheduled()
    told = len(works.told)
    works.pass_(60)
    await works.states("done")
    assert len(works.told) == told


@pytest.mark.parametrize(
    ("minutes", "states"),
    [
        (65, ["done"]),
        (64 + 60, ["skipped", "done"]),
        (90, ["skipped"]),
        (24 * 60 + 30, ["skipped"]),
    ],
)
async def test_after_a_daemon_that_was_down_the_latest_due_time_is_caught_up_if_it_is_not_old(
    works: ScheduledWorks, minutes: int, states: list[str]
) -> None:
    await works.scheduled()
    await works.stop()
    works.pass_(minutes)
    await works.start()
    runs = await works.states(*states)
    assert sum(run.count for run in runs) == minutes // 60
    if states[-1] == "done":
        assert runs[-1].cause == "catch-up"
        assert runs[-1].due_ms == SUNDAY_NOON_MS + minutes // 60 * HOUR_MS
    missed = works.events("schedule.missed")
    assert len(missed) == (states[0] == "skipped")


async def test_a_daemon_that_was_down_for_years_starts_at_once(works: ScheduledWorks) -> None:
    await works.scheduled("* * * * *", catch_up_ms=0)
    await works.stop()
    works.pass_(5 * 366 * 24 * 60)
    await works.start()
    runs = await works.states("skipped", "done")
    assert runs[0].count == 5 * 366 * 24 * 60 - 1
    assert runs[0].due_ms == works.clock.at_ms - MINUTE_MS
    assert runs[1].due_ms == works.clock.at_ms
    [missed] = works.events("schedule.missed")
    assert "was not run for 2,635,199 due times, the latest 2031-11-26T11:59:00Z: " in missed


async def test_a_due_time_that_began_before_the_daemon_ended_is_not_run_again(
    works: ScheduledWorks,
) -> None:
    await works.scheduled()
    works.work.gate.clear()
    works.pass_(60)
    await works.under_way()
    await works.stop()
    works.work.gate.set()
    await works.start()
    [run] = await works.states("interrupted")
    assert run.failure == "the daemon ended while it ran"
    assert len(works.work.begun) == 1
    operation = await works.operations.whole(run.operation)
    assert (operation.state, operation.failure) == ("failed", "the daemon ended while it ran")
    assert "was interrupted" in works.events("schedule.failed")[0]


async def test_an_interrupted_run_is_tried_again_where_it_has_retries(
    works: ScheduledWorks,
) -> None:
    await works.scheduled(retries=1, backoff_ms=5_000)
    works.work.gate.clear()
    works.pass_(60)
    await works.under_way()
    await works.stop()
    await works.start()
    [run] = await works.states("retrying")
    assert run.retry_at_ms == works.clock.at_ms + 5_000
    await works.stop()  # and the pause goes on over another restart
    works.work.gate.set()
    works.pass_(0.05)
    await works.start()
    await works.states("retrying")
    works.pass_(0.05)
    [run] = await works.states("done")
    assert run.attempt == 2


async def test_due_times_under_a_long_run_are_skipped(works: ScheduledWorks) -> None:
    await works.scheduled(timeout_ms=24 * HOUR_MS)
    works.work.gate.clear()
    for _ in range(3):
        works.pass_(60)
        await works.until(lambda: (works.next_ms or 0) > works.clock.at_ms)
    running, skipped = await works.runs()
    assert (running.state, skipped.state, skipped.count) == ("running", "skipped", 2)
    works.work.gate.set()
    await works.states("done", "skipped")


async def test_one_run_waits_where_that_is_the_policy(works: ScheduledWorks) -> None:
    await works.scheduled(overlap="queue", timeout_ms=24 * HOUR_MS)
    works.work.gate.clear()
    works.pass_(60)
    await works.states("running")
    works.pass_(60)
    await works.states("running", "queued")
    assert works.schedules.view("s").state == "running"
    await works.stop()  # it waits in the rows, too
    works.work.gate.set()
    await works.start()
    _, second = await works.states("interrupted", "done")
    assert second.due_ms == SUNDAY_NOON_MS + 2 * HOUR_MS


async def test_a_run_that_takes_too_long_is_stopped_and_told(works: ScheduledWorks) -> None:
    await works.scheduled(timeout_ms=60_000)
    works.work.gate.clear()
    works.pass_(60)
    await works.states("running")
    works.pass_(1)
    [run] = await works.states("timed-out")
    assert run.failure == "it took longer than 1m00s"
    assert works.work.stopped == 1
    [told] = works.events("schedule.failed")
    assert told == "Run 1 of the schedule s, work, took too long: it took longer than 1m00s."


async def test_a_run_that_an_operator_cancels_is_stopped_for_good(works: ScheduledWorks) -> None:
    await works.scheduled(retries=3)
    works.work.gate.clear()
    run = await works.schedules.trigger("s")
    await works.operations.cancel(run.operation, caller=works.ana, reason="too loud")
    [run] = await works.states("cancelled")
    assert run.failure == "local:ana cancelled it: too loud"
    assert run.output == "it begins for the 1. time"
    assert works.work.stopped == 1
    assert (await works.operations.whole(run.operation)).state == "cancelled"
    assert works.events("schedule.failed") == []


async def test_a_run_that_has_ended_cannot_be_cancelled(works: ScheduledWorks) -> None:
    row = await works.apply(RunTask("work"))
    with pytest.raises(OperationEnded):
        await works.operations.cancel(row.number, caller=works.ana)


async def test_a_schedule_that_is_removed_while_another_is_decided_about_harms_none(
    works: ScheduledWorks, monkeypatch: pytest.MonkeyPatch
) -> None:
    await works.scheduled()
    await works.apply(CreateSchedule("t", "work", "0 * * * *"))
    store, held = works.plant.store, asyncio.Event()
    commit, deciding = store.commit, asyncio.Event()

    async def slow(writes: Sequence[Write], *more: Sequence[Precondition]) -> list[int]:
        if any(isinstance(each, Put) and isinstance(each.row, ScheduleRunRow) for each in writes):
            deciding.set()
            await held.wait()
        return await commit(writes, *more)

    monkeypatch.setattr(store, "commit", slow)
    works.pass_(60)
    await deciding.wait()
    await works.apply(RemoveSchedule("t"))
    held.set()
    await works.states("done")
    works.pass_(60)
    await works.states("done", "done")


async def test_a_schedule_that_goes_on_failing_is_told_once_an_hour_and_when_it_works_again(
    works: ScheduledWorks,
) -> None:
    await works.scheduled("*/15 * * * *")
    works.work.fails = "no disk"
    for at in range(1, 7):
        works.pass_(15)
        await works.states(*["failed"] * at)
    assert len(works.events("schedule.failed")) == 2
    assert works.events("schedule.failed")[0].endswith("The task work failed: no disk.")
    works.work.fails = ""
    works.pass_(15)
    await works.states(*["failed"] * 6, "done")
    assert len(works.events("schedule.recovered")) == 1


async def test_what_is_due_in_a_pause_is_not_run_and_an_operator_may_run_it(
    works: ScheduledWorks,
) -> None:
    await works.scheduled()
    await works.apply(PauseSchedule("s"))
    works.pass_(120)
    assert (await works.schedules.trigger("s")).run == 1
    [run] = await works.states("done")
    assert run.cause == "operator"
    view = works.schedules.view("s")
    assert (view.state, view.next_ms) == ("paused", None)
    await works.apply(ResumeSchedule("s"))
    works.pass_(1)
    await works.until(lambda: works.schedules.view("s").next_ms is not None)
    assert works.schedules.view("s").next_ms == SUNDAY_NOON_MS + 3 * HOUR_MS
    assert len(await works.runs()) == 1


async def test_a_pause_and_a_resume_in_a_daemon_that_ends_at_once_catch_nothing_up(
    works: ScheduledWorks,
) -> None:
    await works.scheduled()
    await works.apply(PauseSchedule("s"))
    works.pass_(65)
    await works.apply(ResumeSchedule("s"))
    await works.restart()
    assert works.schedules.view("s").next_ms == SUNDAY_NOON_MS + 2 * HOUR_MS
    assert await works.runs() == []


async def test_a_second_run_is_refused_with_the_number_of_the_first(
    works: ScheduledWorks,
) -> None:
    await works.scheduled()
    works.work.gate.clear()
    run = await works.schedules.trigger("s")
    assert (run.run, run.state, run.operation > 0) == (1, "running", True)
    with pytest.raises(ScheduleBusy, match="Run 1 of the schedule s has not ended"):
        await works.schedules.trigger("s")
    with pytest.raises(ScheduleNotFound):
        await works.schedules.trigger("t")
    works.work.gate.set()
    await works.states("done")


@pytest.mark.parametrize(("hours", "states"), [(1, ["done"]), (5, ["skipped", "done"])])
async def test_a_clock_that_is_set_forward_catches_up_as_after_a_daemon_that_was_down(
    works: ScheduledWorks, hours: int, states: list[str]
) -> None:
    await works.scheduled()
    works.clock.at_ms += hours * HOUR_MS
    runs = await works.states(*states)
    assert runs[-1].due_ms == works.clock.at_ms


async def test_a_clock_that_is_set_back_an_hour_runs_nothing_twice(works: ScheduledWorks) -> None:
    await works.scheduled()
    works.pass_(60)
    await works.states("done")
    works.clock.at_ms -= HOUR_MS
    works.pass_(60)
    await asyncio.sleep(0.02)
    assert len(await works.runs()) == 1
    works.pass_(60)
    await works.states("done", "done")


async def test_a_clock_that_was_a_year_ahead_does_not_stop_the_schedule(
    works: ScheduledWorks,
) -> None:
    await works.scheduled()
    works.clock.at_ms += 365 * 24 * HOUR_MS
    await works.states("skipped", "done")
    works.clock.at_ms -= 365 * 24 * HOUR_MS
    await works.until(lambda: works.schedules.view("s").next_ms == SUNDAY_NOON_MS + HOUR_MS)
    works.pass_(60)
    await works.states("skipped", "done", "done")


async def test_an_edit_keeps_what_it_does_not_name_and_can_be_taken_back(
    works: ScheduledWorks,
) -> None:
    await works.scheduled(arguments=(("how", "well"),), jitter_ms=60_000)
    edit = EditSchedule("s", cron="30 4 * * *", no_arguments=("how",))
    plan = await works.operations.plan(edit)
    assert plan.summary == (
        "edit s: cron from '0 * * * *' to '30 4 * * *', arguments from how=well to none"
    )
    assert plan.effects[0].startswith("It is due at 2026-11-23T04:30:00Z, 2026-11-24T04:30:00Z, ")
    done = await works.apply(edit, if_revision=plan.revision)
    row = works.schedules.view("s").row
    assert (row.cron, row.arguments, row.jitter_ms, row.revision) == ("30 4 * * *", "{}", 60_000, 1)
    await works.apply(Undo(done.number))
    row = works.schedules.view("s").row
    assert (row.cron, row.arguments, row.revision) == ("0 * * * *", '{"how": "well"}', 2)


async def test_a_schedule_that_is_removed_takes_its_history_and_lets_its_run_end(
    works: ScheduledWorks,
) -> None:
    await works.scheduled()
    works.work.gate.clear()
    run = await works.schedules.trigger("s")
    plan = await works.operations.plan(RemoveSchedule("s"))
    assert plan.effects == (
        "The history of 1 run goes with it.",
        "A run that is under way goes on to its end.",
    )
    await works.apply(RemoveSchedule("s"))
    works.work.gate.set()
    assert (await works.ended(run.operation)).state == "done"
    assert await works.plant.store.scan(ScheduleRunRow) == []
    assert works.schedules.views() == []
    await works.scheduled()
    assert await works.runs() == []


async def test_a_run_waits_for_another_one_of_its_task(works: ScheduledWorks) -> None:
    await works.scheduled()
    works.work.gate.clear()
    row = await works.operations.apply(RunTask("work"), caller=works.ana)
    works.pass_(60)
    await works.states("running")
    works.work.gate.set()
    await works.ended(row.number)
    [run] = await works.states("done")
    assert run.operation > row.number


async def test_a_run_waits_no_longer_for_another_one_than_it_may_take(
    works: ScheduledWorks,
) -> None:
    await works.scheduled(timeout_ms=60_000)
    works.work.gate.clear()
    row = await works.operations.apply(RunTask("work"), caller=works.ana)
    works.pass_(60)
    await works.states("running")
    works.pass_(2)
    [run] = await works.states("timed-out")
    assert run.failure == f"Operation {row.number}, tasks.run, is still running on task/work."
    works.work.gate.set()
    await works.ended(row.number)


async def test_what_a_full_disk_does_not_take_is_decided_later(
    works: ScheduledWorks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dssd.schedules.schedules.SCHEDULE_RETRY_S", 0.05)
    await works.scheduled()
    store = works.plant.store
    commit, refused = store.commit, 0

    async def full(*_given: object) -> list[int]:
        nonlocal refused
        refused += 1
        raise DiskFull

    monkeypatch.setattr(store, "commit", full)
    works.pass_(60)
    began_s = time.monotonic()
    await works.until(lambda: refused > 2)
    assert time.monotonic() - began_s >= 0.1, "it is not tried again at once"
    assert works.work.begun == []
    monkeypatch.setattr(store, "commit", commit)
    [run] = await works.states("done")
    assert run.cause == "cron"


async def test_a_schedule_whose_time_zone_the_machine_does_not_know_harms_nobody(
    works: ScheduledWorks,
) -> None:
    await works.scheduled()
    row = replace(works.schedules.view("s").row, name="moved", time_zone="Mars/Phobos")
    row = replace(row, schedule_id=row.schedule_id + 1_000)
    await works.plant.store.commit([Put(row)])
    await works.restart()
    view = works.schedules.view("moved")
    assert (view.state, view.next_ms) == ("broken", None)
    assert works.events("schedule.failed") == [
        "The schedule moved is not run: There is no time zone Mars/Phobos."
    ]
    works.pass_(60)
    await works.states("done")
    await works.apply(EditSchedule("moved", time_zone="UTC"))
    assert works.schedules.view("moved").row.time_zone == "UTC"


async def test_the_end_of_a_run_that_a_full_disk_does_not_take_is_kept_later(
    works: ScheduledWorks, monkeypatch: pytest.MonkeyPatch
) -> None:
    await works.scheduled()
    works.work.gate.clear()
    await works.schedules.trigger("s")
    store = works.plant.store
    commit, refused = store.commit, 0

    async def full(writes: Sequence[Write], *more: Sequence[Precondition]) -> list[int]:
        nonlocal refused
        if any(isinstance(each, Put) and isinstance(each.row, ScheduleRunRow) for each in writes):
            refused += 1
            raise DiskFull
        return await commit(writes, *more)

    monkeypatch.setattr(store, "commit", full)
    works.work.gate.set()
    await works.until(lambda: refused > 2)
    monkeypatch.setattr(store, "commit", commit)
    [run] = await works.states("done")
    assert run.failure == ""


async def test_only_so_many_runs_are_kept(
    works: ScheduledWorks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dssd.schedules.run_rows.RUNS_KEPT_MAX", 2)
    await works.scheduled("*/15 * * * *")
    for at in range(1, 5):
        works.pass_(15)
        await works.ended_run(at)
    assert [run.run for run in await works.runs()] == [3, 4]


async def test_each_trigger_is_answered_by_its_own_run(works: ScheduledWorks) -> None:
    await works.scheduled(overlap="allow")
    works.work.gate.clear()
    rows = await asyncio.gather(*(works.schedules.trigger("s", f"{at}") for at in range(3)))
    assert sorted(row.run for row in rows) == [1, 2, 3]
    works.work.gate.set()
    await works.states("done", "done", "done")


async def test_a_run_that_waited_for_its_operator_is_skipped_as_his(works: ScheduledWorks) -> None:
    await works.scheduled(overlap="queue", timeout_ms=24 * HOUR_MS)
    works.work.gate.clear()
    works.pass_(60)
    await works.states("running")
    await works.schedules.trigger("s")
    await works.apply(PauseSchedule("s"))
    _, skipped = await works.states("running", "skipped")
    assert (skipped.cause, skipped.failure) == ("operator", "the schedule was paused")
    works.work.gate.set()
    await works.states("done", "skipped")


async def test_a_schedule_that_cannot_be_decided_about_rests_and_others_go_on(
    works: ScheduledWorks, monkeypatch: pytest.MonkeyPatch
) -> None:
    await works.scheduled()
    await works.apply(CreateSchedule("a", "work", "* * * * *"))
    live = works.schedules._live("a")
    monkeypatch.setattr(type(live), "looked", lambda each, at: 1 // (each.row.name != "a") and None)
    works.pass_(1)
    await works.until(lambda: bool(works.events("internal.error")))
    monkeypatch.undo()
    works.pass_(59)
    await works.states("done")
    await works.until(lambda: works.schedules.view("a").last is not None)
    assert len(works.events("internal.error")) == 1


def mistake() -> object:
    return 1 // 0


async def test_a_task_that_makes_a_mistake_fails_its_run_and_the_next_one_goes_well(
    works: ScheduledWorks,
) -> None:
    await works.scheduled()
    works.work.mistake = mistake
    works.pass_(60)
    [run] = await works.states("failed")
    assert "of the daemon in task work ended this: ZeroDivisionError: " in run.failure
    assert run.output == "it begins for the 1. time"
    assert len(works.events("internal.error")) == 1
    works.work.mistake = None
    works.pass_(60)
    await works.states("failed", "done")


async def test_an_attempt_whose_end_is_not_understood_fails(
    works: ScheduledWorks, monkeypatch: pytest.MonkeyPatch
) -> None:
    await works.scheduled()
    monkeypatch.setattr("dssd.schedules.schedules._outcome", lambda _row: mistake())
    works.pass_(60)
    [run] = await works.states("failed")
    assert "in schedules ended this: ZeroDivisionError" in run.failure


async def test_an_operation_that_makes_a_mistake_ends_as_failed(
    works: ScheduledWorks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(works._runs, "work", lambda *_given: mistake())
    row = await works.apply(RunTask("work"))
    assert row.state == "failed"
    assert "in operation tasks.run ended this: ZeroDivisionError" in row.failure


async def test_a_cancelled_operation_of_which_nobody_can_say_what_it_did_ends_as_failed(
    works: ScheduledWorks, monkeypatch: pytest.MonkeyPatch
) -> None:
    works.work.gate.clear()
    row = await works.operations.apply(RunTask("work"), caller=works.ana)
    await works.under_way()
    monkeypatch.setattr("dssd.schedules.task_runs.TaskRunKind.made", lambda *_given: mistake())
    await works.operations.cancel(row.number, caller=works.ana)
    row = await works.ended(row.number)
    assert row.state == "failed"
    assert "in ends of operations ended this: ZeroDivisionError" in row.failure


async def test_an_operation_that_cannot_be_resumed_keeps_no_daemon_down(
    works: ScheduledWorks, monkeypatch: pytest.MonkeyPatch
) -> None:
    works.work.gate.clear()
    row = await works.operations.apply(RunTask("work"), caller=works.ana)
    await works.under_way()
    await works.stop()
    monkeypatch.setattr("dssd.schedules.task_runs.TaskRunKind.resumed", lambda *_given: mistake())
    await works.start()
    row = await works.ended(row.number)
    assert row.state == "failed"
    assert "in operation tasks.run ended this: ZeroDivisionError" in row.failure


async def test_what_the_core_raises_in_a_task_ends_the_daemon(tmp_path: Path) -> None:
    works = ScheduledWorks(tmp_path, MemoryStore())
    await works.start()
    works.work.mistake = lambda: ban_of(None, None)  # type: ignore[arg-type] # that is the mistake
    await works.operations.apply(RunTask("work"), caller=works.ana)

    async def lived() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await works.stop()

    with pytest.raises(BaseExceptionGroup) as ended:
        await lived()
    assert ended.group_contains(AttributeError)
    assert works.events("internal.error") == []
