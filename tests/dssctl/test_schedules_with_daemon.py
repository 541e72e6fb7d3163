"""``dssctl schedules`` and ``dssctl tasks``, against a daemon process."""

import asyncio
import fcntl
import json
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

import dss_client
from dss_client import WatchKey
from dss_client.changes import CreateSchedule
from support.dssctl_call import Completed, Daemon


def ok(done: Completed) -> str:
    assert done.returncode == 0, done.stderr.decode()
    assert b"\x1b" not in done.stdout + done.stderr
    return done.stdout.decode()


def items(done: Completed) -> list[dict[str, Any]]:
    document = json.loads(ok(done))
    return list(document["items"]) if "items" in document else [document["item"]]


def refused(done: Completed, exit_code: int, code: str) -> str:
    said = done.stderr.decode()
    assert done.returncode == exit_code, said
    assert f"error {code}: " in said
    return said


def ended_run(daemon: Daemon, name: str) -> dict[str, Any]:
    """Its only run, which is stored as ended a moment after its operation."""
    while True:
        [run] = items(daemon.dssctl("schedules", "runs", name, "-o", "json"))
        if run["ended_at"] is not None:
            return run


def test_a_schedule_is_made_shown_run_changed_paused_and_removed(daemon: Daemon) -> None:
    dssctl = daemon.dssctl
    made = dssctl(
        *("schedules", "create", "nightly", "--cron", "0 3 * * *", "--task", "checkpoint"),
        *("--tz", "Europe/Berlin", "--overlap", "queue", "--retries", "2", "--reason", "TKT-1"),
    )
    assert "schedule checkpoint as nightly, 0 3 * * * (Europe/Berlin)" in ok(made)
    assert b"It is due at " in made.stderr
    listed = ok(dssctl("schedules", "ls")).splitlines()
    assert listed[0].split() == ["NAME", "TASK", "CRON", "STATE", "NEXT-IN", "LAST"]
    assert listed[1].startswith("nightly  checkpoint  0 3 * * * (Europe/Berlin)  idle")
    triggered = ok(dssctl("schedules", "trigger", "nightly", "--reason", "TKT-2"))
    assert "STATE    done" in triggered
    assert "of the write-ahead log were written back." in triggered
    run = ended_run(daemon, "nightly")
    assert (run["run"], run["state"], run["cause"], run["attempt"]) == (1, "done", "operator", 1)
    [operation] = items(dssctl("ops", "show", str(run["operation"]), "-o", "json"))
    assert operation["principal"] == "schedule:nightly"
    assert operation["reason"].endswith(": TKT-2")
    last = ok(dssctl("schedules", "runs", "nightly", "--last"))
    assert last.splitlines()[-1] == run["output"][0]
    edited = dssctl("schedules", "edit", "nightly", "--jitter", "5m", "-y")
    assert "edit nightly: jitter from 0s to 5m00s" in ok(edited)
    refused(
        dssctl("schedules", "edit", "nightly", "--retries", "1", "-y", "--if-revision", "0"),
        6,
        "DSS2019",
    )
    ok(dssctl("schedules", "pause", "nightly", "-y"))
    [schedule] = items(dssctl("schedules", "ls", "-o", "json"))
    assert (schedule["state"], schedule["next_at"], schedule["overlap"]) == (
        "paused",
        None,
        "queue",
    )
    assert (schedule["jitter_ms"], schedule["retries"], schedule["revision"]) == (300_000, 2, 2)
    ok(dssctl("schedules", "resume", "nightly", "-y"))
    described = ok(dssctl("schedules", "describe", "nightly"))
    assert "DUE NEXT\n" in described
    assert "REMOVED    yes" in ok(dssctl("schedules", "rm", "nightly", "-y"))
    refused(dssctl("schedules", "describe", "nightly"), 5, "DSS2062")
    ok(dssctl("schedules", "rm", "nightly", "-y", "--if-exists"))


def test_a_dry_run_makes_nothing_and_says_when_it_would_be_due(daemon: Daemon) -> None:
    arguments = ("schedules", "create", "dry", "--cron", "@daily", "--task", "checkpoint")
    [plan] = items(daemon.dssctl(*arguments, "--dry-run", "-o", "json"))
    assert plan["effects"][1].startswith("It is due at ")
    refused(daemon.dssctl("schedules", "describe", "dry"), 5, "DSS2062")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--cron", "0 0 30 2 *", "--task", "checkpoint"), "DSS1061"),
        (("--cron", "* * * * *", "--task", "checkpoint", "--tz", "Mars"), "DSS1062"),
        (("--cron", "* * * * *", "--task", "checkpoint", "--jitter", "1m"), "DSS1010"),
        (("--cron", "* * * * *", "--task", "checkpoint", "--overlap", "no"), "DSS1010"),
        (("--cron", "* * * * *", "--task", "checkpoint", "--arg", "x=1"), "DSS1010"),
        (("--cron", "* * * * *", "--task", "checkpoint", "--run-timeout", "1ms"), "DSS1010"),
    ],
)
def test_what_cannot_be_run_is_refused_when_it_is_made(
    daemon: Daemon, arguments: tuple[str, ...], code: str
) -> None:
    refused(daemon.dssctl("schedules", "create", "bad", *arguments), 2, code)


def test_a_preview_shows_an_expression_in_its_zone(daemon: Daemon) -> None:
    due = items(
        daemon.dssctl(
            *("schedules", "preview", "--cron", "30 2 * * *", "--tz", "Asia/Tokyo", "-n", "3"),
            *("-o", "json"),
        )
    )
    assert [each["local"][10:] for each in due] == ["T02:30:00+09:00"] * 3
    assert [each["at"][10:] for each in due] == ["T17:30:00Z"] * 3


def test_a_task_that_is_run_says_its_output_and_nothing_else(daemon: Daemon) -> None:
    done = daemon.dssctl("tasks", "run", "checkpoint")
    assert ok(done).splitlines()[-1].endswith("of the write-ahead log were written back.")
    assert done.stderr == b""
    said = refused(daemon.dssctl("tasks", "run", "scrup"), 5, "DSS2063")
    assert "Did you mean scrub?" in said


def test_a_task_is_not_run_while_another_process_holds_its_lock(
    daemon: Daemon, tmp_path: Path
) -> None:
    path = tmp_path / "checkpoint.lock"
    ok(daemon.dssctl("tasks", "run", "checkpoint", "--lock", str(path)))
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        locked = daemon.dssctl("tasks", "run", "checkpoint", "--lock", str(path))
    assert str(path) in refused(locked, 6, "DSS1112")
    ok(daemon.dssctl("tasks", "run", "checkpoint", "--lock", str(path)))


def test_a_lock_that_cannot_be_made_runs_nothing(daemon: Daemon, tmp_path: Path) -> None:
    done = daemon.dssctl("tasks", "run", "checkpoint", "--lock", str(tmp_path / "no/such/lock"))
    assert "No such file or directory" in refused(done, 2, "DSS1010")


def test_a_paused_schedule_waits_for_its_resume(daemon: Daemon) -> None:
    ok(
        daemon.dssctl(
            *("schedules", "create", "asleep", "--cron", "* * * * *", "--task", "checkpoint"),
            "--paused",
        )
    )
    listed = ok(daemon.dssctl("schedules", "ls", "--filter", "state=paused", "-o", "name"))
    assert listed == "asleep\n"
    ok(daemon.dssctl("schedules", "resume", "asleep", "-y"))
    [schedule] = items(daemon.dssctl("schedules", "ls", "--filter", "name=asleep", "-o", "json"))
    assert (schedule["paused"], schedule["next_at"] is None) == (False, False)


def test_tasks_are_listed_with_what_they_take(daemon: Daemon) -> None:
    listed = items(daemon.dssctl("tasks", "ls", "-o", "json"))
    assert "checkpoint" in {task["name"] for task in listed}
    assert "TASK" in ok(daemon.dssctl("tasks", "describe", "checkpoint"))


@pytest.mark.parametrize(
    ("task", "arguments", "said"),
    [
        ("scrub", ("--arg", "rate=1G"), "nothing was read: no segment is sealed yet."),
        ("retention", (), "0 segments went."),
        ("sessions", (), "0 expired sessions went, "),
        ("rebalance", (), ""),
        ("lag-check", ("--arg", "max-lag=0"), "none is too far behind."),
        ("snapshot", ("--arg", "keep=1"), "/support/snapshot-"),
    ],
)
def test_every_task_can_be_run_by_hand(
    daemon: Daemon, task: str, arguments: tuple[str, ...], said: str
) -> None:
    done = daemon.dssctl("tasks", "run", task, *arguments)
    assert said in ok(done)
    assert done.stderr == b""


def test_a_snapshot_has_what_helps_and_no_record(daemon: Daemon) -> None:
    ok(daemon.dssctl("topics", "create", "secret"))
    ok(daemon.dssctl("produce", "secret", stdin=b"do not tell\n"))
    output = ok(daemon.dssctl("tasks", "run", "snapshot"))
    path = Path(output.splitlines()[-1].partition(", ")[0])
    document = json.loads(path.read_text())
    assert set(document) == {"daemon", "config", "groups", "schedules", "operations", "events"}
    assert document["daemon"]["state"] == "serving"
    assert "do not tell" not in path.read_text()


def test_a_watch_tells_of_schedules(daemon: Daemon) -> None:
    async def told() -> dss_client.Schedule:
        async with dss_client.connect(endpoint=daemon.endpoint) as client:
            await client.operations.apply(CreateSchedule("watched", "checkpoint", "@daily"))
            async with aclosing(client.watch("schedules")) as watching:
                async for update in watching:
                    for key, value in update.changed:
                        if key == WatchKey("schedules", "", "watched"):
                            assert isinstance(value, dss_client.Schedule)
                            return value
        raise AssertionError("a watch does not end")

    schedule = asyncio.run(told())
    assert (schedule.cron, schedule.state) == ("@daily", "idle")
