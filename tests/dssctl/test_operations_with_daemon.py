"""Commands that change something, against a daemon process."""

import asyncio
import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import dss_client
from dss_core.errors import ExitCode
from dssctl.settings import Format
from support.dssctl_call import Completed, Daemon, run_dssctl
from support.started_program import ProgramProcess

RECORDS = 20
OPERATIONS_TRIED = 5
_names = count(1)

NO_ITEMS = {Format.TEMPLATE, Format.NONE, Format.HELP}
"""Formats that do not show items as they are."""


def ok(done: Completed, code: int = 0) -> str:
    assert done.returncode == code, done.stderr.decode()
    assert b"\x1b" not in done.stdout + done.stderr
    return done.stdout.decode()


def item(done: Completed, code: int = 0) -> dict[str, Any]:
    document = json.loads(ok(done, code))
    assert document["apiVersion"] == "dssctl/v1"
    return dict(document["item"])


def refused(done: Completed, exit_code: int, code: str) -> str:
    said = done.stderr.decode()
    assert done.returncode == exit_code, said
    assert f"error {code}: " in said
    assert "Traceback" not in said
    return said


async def published(daemon: Daemon, topic: str, records: int) -> None:
    async with (
        dss_client.connect(endpoint=daemon.endpoint) as client,
        client.producer(topic) as producer,
    ):
        for at in range(records):
            producer.send_nowait(b"%d" % at)


def consumed(daemon: Daemon, records: int = RECORDS, acked: int = RECORDS) -> str:
    """A group of its own over a topic of one stream of its own, that has acknowledged so many."""
    name = f"team{next(_names)}"
    ok(daemon.dssctl("topics", "create", name))
    ok(daemon.dssctl("groups", "create", f"{name}@{name}/#", "--start", "earliest"))
    asyncio.run(published(daemon, name, records))
    if acked:
        ok(daemon.dssctl("consume", f"{name}/#", "-g", name, "-n", str(acked), "-o", "jsonl"))
    return name


def notes(done: Completed) -> list[str]:
    """What was said beside the data, to a program."""
    return [json.loads(line)["message"] for line in done.stderr.splitlines()]


def floor(daemon: Daemon, group: str) -> int:
    (grant,) = json.loads(ok(daemon.dssctl("grants", "ls", "-g", group, "-o", "json")))["items"]
    return int(grant["floor"])


def applied(daemon: Daemon, *arguments: str) -> dict[str, Any]:
    """What an operation was, that is done."""
    operation = item(daemon.dssctl(*arguments, "-y", "-o", "json"))
    assert operation["state"] == "done"
    return operation


def test_a_dry_run_shows_the_plan_and_changes_nothing(daemon: Daemon) -> None:
    group = consumed(daemon)
    rewind = ("offsets", "rewind", group, "--to", "earliest", "--dry-run")
    printed = ok(daemon.dssctl(*rewind))
    assert ["STREAM", "FLOOR", "TARGET", "AGAIN", "PASSED", "HOLDER"] in [
        line.split() for line in printed.splitlines()
    ]
    assert f"{group}/0/0" in printed
    assert "EFFECTS\n20 records come again" in printed
    plan = item(daemon.dssctl(*rewind, "-o", "json", "--detailed-exitcode"), 10)
    (stream,) = plan["streams"]
    assert (plan["kind"], plan["revision"], plan["undoable"]) == ("offsets.rewind", 0, True)
    assert (stream["floor"], stream["target"], stream["again"]) == (RECORDS, 0, RECORDS)
    assert floor(daemon, group) == RECORDS
    assert json.loads(ok(daemon.dssctl("ops", "ls", "-g", group, "-o", "json")))["items"] == []


def test_what_is_applied_is_shown_listed_and_taken_back_once(daemon: Daemon) -> None:
    group = consumed(daemon)
    done = daemon.dssctl("offsets", "rewind", group, "--to", "=5", "-y", "--reason", "a ticket")
    assert f"{group}/0/0" in ok(done)
    said = done.stderr.decode()
    assert "15 records come again" in said, "the plan is shown beside the data"
    (listed,) = json.loads(ok(daemon.dssctl("ops", "ls", "-g", group, "-o", "json")))["items"]
    number = str(listed["number"])
    assert f"note: undo with: dssctl ops undo {number}\n" in said
    none = daemon.dssctl("ops", "ls", "-g", group, "--state", "failed")
    assert (ok(none).count("\n"), none.stderr) == (1, b"note: no operation matches\n")
    assert daemon.dssctl("ops", "ls", "--state", "over").returncode == 2
    assert (listed["reason"], listed["state"]) == ("a ticket", "done")
    assert floor(daemon, group) == 5
    shown = item(daemon.dssctl("ops", "show", number, "-o", "json"))
    assert [each["floor_before"] for each in shown["streams"]] == [RECORDS]
    assert [each["floor_after"] for each in shown["streams"]] == [5]
    assert "FLOOR-BEFORE" in ok(daemon.dssctl("ops", "show", number))
    assert item(daemon.dssctl("ops", "wait", number, "-o", "json"))["state"] == "done"
    undone = applied(daemon, "ops", "undo", number)
    assert undone["undoes"] == int(number)
    assert floor(daemon, group) == RECORDS
    assert refused(daemon.dssctl("ops", "undo", number, "-y"), 6, "DSS2022")
    refused(daemon.dssctl("ops", "cancel", number, "-y"), 6, "DSS2023")
    refused(daemon.dssctl("ops", "show", "999999"), 5, "DSS2021")
    refused(daemon.dssctl("ops", "show", "9" * 20), 2, "DSS1101")


def test_an_undo_that_names_nothing_plans_that_of_the_newest_that_is_no_undo(
    daemon: Daemon,
) -> None:
    group = consumed(daemon)
    first = applied(daemon, "groups", "edit", group, "--ack-wait", "40s")
    second = applied(daemon, "groups", "edit", group, "--ack-wait", "50s")
    planned = daemon.dssctl("ops", "undo", "--dry-run", "-o", "json")
    assert f"take back operation {second['number']}:" in item(planned)["summary"]
    said = f"the newest that can be undone is {second['number']}, {second['summary']}"
    assert said in planned.stderr.decode()
    assert said in refused(daemon.dssctl("ops", "undo", "--yes"), 2, "DSS1101")
    refused(daemon.dssctl("ops", "undo"), 2, "DSS1102")
    applied(daemon, "ops", "undo", str(second["number"]))
    again = item(daemon.dssctl("ops", "undo", "--dry-run", "-o", "json"))
    assert f"take back operation {first['number']}:" in again["summary"]


@pytest.mark.parametrize("output", sorted(set(Format) - NO_ITEMS))
def test_plans_and_operations_have_every_format(output: Format, daemon: Daemon) -> None:
    group = consumed(daemon)
    rewind = ("offsets", "rewind", group, "--to", "earliest", "-o", output)
    planned = ok(daemon.dssctl(*rewind, "--dry-run"))
    done = daemon.dssctl(*rewind, "-y")
    listed = ok(daemon.dssctl("ops", "ls", "-g", group, "-o", output))
    (number,) = ok(daemon.dssctl("ops", "ls", "-g", group, "-o", "name")).split()
    shown = ok(daemon.dssctl("ops", "show", number, "-o", output))
    assert group in planned
    for operation in (ok(done), listed, shown):
        assert number in operation
    if output is not Format.NAME:
        assert all("rewind" in each for each in (planned, ok(done), listed, shown))


def test_a_plan_in_a_file_is_applied_once_and_only_while_nothing_moved(
    daemon: Daemon, tmp_path: Path
) -> None:
    group = consumed(daemon)
    plan = tmp_path / "plan.json"
    dry = daemon.dssctl("offsets", "rewind", group, "--by", "8", "--dry-run", "-o", "json")
    plan.write_text(ok(dry))
    piped = daemon.dssctl("ops", "apply", "-", "--dry-run", "-o", "json", stdin=dry.stdout)
    assert item(piped)["streams"] == item(dry)["streams"]
    assert applied(daemon, "ops", "apply", str(plan))["kind"] == "offsets.rewind"
    assert floor(daemon, group) == RECORDS - 8
    again = daemon.dssctl("ops", "apply", str(plan), "-y")
    assert "operation" in refused(again, 6, "DSS2019")
    assert again.stdout == b""
    refused(daemon.dssctl("ops", "apply", str(plan), "--dry-run"), 6, "DSS2019")
    assert floor(daemon, group) == RECORDS - 8


def test_a_file_that_is_no_plan_is_refused(daemon: Daemon, tmp_path: Path) -> None:
    group = consumed(daemon, records=1, acked=0)
    offsets = tmp_path / "offsets.json"
    offsets.write_text(ok(daemon.dssctl("offsets", "export", group)))
    assert "its kind is not OperationPlan" in refused(
        daemon.dssctl("ops", "apply", str(offsets), "-y"), 2, "DSS1108"
    )
    broken = tmp_path / "broken.json"
    broken.write_text(
        json.dumps({"kind": "OperationPlan", "item": {"change": {"x": 1}, "revision": 0}})
    )
    refused(daemon.dssctl("ops", "apply", str(broken), "-y"), 2, "DSS1108")


def test_a_revision_that_moved_is_a_conflict_and_nothing_changes(daemon: Daemon) -> None:
    group = consumed(daemon)
    applied(daemon, "offsets", "rewind", group, "--by", "3", "--if-revision", "0")
    stale = ("offsets", "rewind", group, "--to", "earliest", "--if-revision", "0")
    said = refused(daemon.dssctl(*stale, "-y"), 6, "DSS2019")
    assert "offsets.rewind" in said, "it says what came between"
    refused(daemon.dssctl(*stale, "--dry-run"), 6, "DSS2019")
    assert floor(daemon, group) == RECORDS - 3
    (listed,) = json.loads(ok(daemon.dssctl("groups", "ls", "-o", "json")))["items"][-1:]
    described = item(daemon.dssctl("groups", "describe", group, "-o", "json"))
    assert described["revision"] == 1
    assert "revision" in listed


def test_a_command_that_is_repeated_with_its_id_does_nothing_again(
    daemon: Daemon,
) -> None:
    group = consumed(daemon)
    rewind = ("offsets", "rewind", group, "--by", "2", "--op-id", f"ticket {group}")
    first = applied(daemon, *rewind)
    done = daemon.dssctl(*rewind, "-y", "-o", "json")
    assert item(done)["number"] == first["number"]
    assert "applied under this id already" in notes(done)[0]
    assert floor(daemon, group) == RECORDS - 2


def test_an_id_of_another_change_is_refused_and_nothing_is_done(daemon: Daemon) -> None:
    group, other = consumed(daemon), consumed(daemon)
    used = ("--op-id", f"ticket {group}", "-y")
    applied(daemon, "offsets", "rewind", group, "--by", "2", "--op-id", f"ticket {group}")
    for again in (
        ("groups", "rm", other),
        ("offsets", "skip", group, "--to", "latest"),
        ("offsets", "rewind", other, "--by", "2"),
    ):
        refused = daemon.dssctl(*again, *used)
        assert refused.returncode == ExitCode.CONFLICT
        assert "DSS2024" in refused.stderr.decode()
    assert floor(daemon, other) == RECORDS


def test_where_there_is_nothing_to_do_no_operation_is_made(daemon: Daemon) -> None:
    group = consumed(daemon)
    done = daemon.dssctl("offsets", "skip", group, "--to", "latest", "-y", "-o", "json")
    assert item(done)["nothing_to_do"] is True
    said = "nothing was changed: there is nothing to do, and the revision stays 0"
    assert notes(done) == [said]
    dry = daemon.dssctl("offsets", "skip", group, "--to", "latest", *_DRY, "--detailed-exitcode")
    ok(dry)
    assert json.loads(ok(daemon.dssctl("ops", "ls", "-g", group, "-o", "json")))["items"] == []


_DRY = ("--dry-run", "-o", "json")


def test_a_cursor_goes_both_ways_by_records_by_time_and_to_a_place(daemon: Daemon) -> None:
    group = consumed(daemon, acked=10)
    stream = ("--stream", f"{group}/0/0")
    applied(daemon, "offsets", "skip", group, "--by", "4", *stream)
    assert floor(daemon, group) == 14
    applied(daemon, "offsets", "seek", group, "--by", "-6", *stream)
    assert floor(daemon, group) == 8
    applied(daemon, "offsets", "seek", group, "--to", "=12")
    assert floor(daemon, group) == 12
    applied(daemon, "offsets", "rewind", group, "--by", "1h")
    assert floor(daemon, group) == 0
    applied(daemon, "offsets", "skip", group, "--to", "now")
    assert floor(daemon, group) == RECORDS
    applied(daemon, "offsets", "rewind", group, "--to", "-1h")
    assert floor(daemon, group) == 0
    listed = daemon.dssctl("ops", "ls", "-g", group, "-n", "2", "-o", "name")
    assert len(ok(listed).split()) == 2
    assert b"there are more" in listed.stderr
    assert daemon.dssctl("ops", "ls", "-g", group, "-n", "6").stderr == b""
    refused(daemon.dssctl("offsets", "seek", group, "--to", "=99", *_DRY[:1]), 2, "DSS2015")


def test_a_stream_that_the_group_does_not_read_is_not_found(daemon: Daemon) -> None:
    group = consumed(daemon, records=1, acked=0)
    other = ("--to", "earliest", "--stream", "other/0/0")
    refused(daemon.dssctl("offsets", "rewind", group, *other, "-y"), 5, "DSS2025")
    refused(daemon.dssctl("offsets", "export", group, *other[2:]), 5, "DSS2025")
    refused(daemon.dssctl("offsets", "rewind", "nobody", "--to", "earliest", "-y"), 5, "DSS2004")


def test_exported_offsets_put_another_group_at_the_same_place(
    daemon: Daemon, tmp_path: Path
) -> None:
    group = consumed(daemon, acked=10)
    applied(daemon, "records", "skip", group, f"{group}/0/0", "15", "--count", "2")
    exported = tmp_path / "offsets.json"
    exported.write_text(ok(daemon.dssctl("offsets", "export", group)))
    (stream,) = json.loads(exported.read_text())["item"]["streams"]
    assert (stream["floor"], stream["acked"], stream["end"]) == (10, [[15, 17]], RECORDS)
    ok(daemon.dssctl("groups", "create", f"copy-{group}@{group}/#"))
    applied(daemon, "offsets", "import", f"copy-{group}", str(exported))
    table = ok(daemon.dssctl("offsets", "export", f"copy-{group}", "-o", "wide"))
    assert "15-16" in table
    imported = item(daemon.dssctl("offsets", "export", f"copy-{group}"))
    assert imported["streams"] == [stream]
    stranger = consumed(daemon, records=1, acked=0)
    refused(daemon.dssctl("offsets", "import", stranger, str(exported), "-y"), 5, "DSS2025")


def test_a_record_is_acknowledged_by_hand_with_a_reason(daemon: Daemon) -> None:
    group = consumed(daemon, acked=10)
    skip = ("records", "skip", group, f"{group}/0/0", "10")
    operation = applied(daemon, *skip, "--reason", "poison")
    assert (operation["kind"], operation["reason"]) == ("records.skip", "poison")
    assert floor(daemon, group) == 11
    out_of_range = ("records", "skip", group, f"{group}/0/0", "99", "-y")
    refused(daemon.dssctl(*out_of_range), 2, "DSS2015")


def test_several_records_and_ranges_are_skipped_in_one_operation(daemon: Daemon) -> None:
    group = consumed(daemon, acked=0)
    stream = f"{group}/0/0"
    operation = applied(daemon, "records", "skip", group, stream, "0", "7-9", "3", "8-10")
    assert "5 passed over" not in operation["summary"]
    assert "6 passed over" in operation["summary"]
    exported = item(daemon.dssctl("offsets", "export", group))["streams"][0]
    assert (exported["floor"], exported["acked"]) == (1, [[3, 4], [7, 11]])
    ok(daemon.dssctl("ops", "undo", str(operation["number"]), "-y"))
    exported = item(daemon.dssctl("offsets", "export", group))["streams"][0]
    assert (exported["floor"], exported["acked"]) == (0, [])
    for typed in (("9-7",), ("x",), ("-",), ("3", "--key", "k"), ("3", "4", "--count", "2"), ()):
        assert daemon.dssctl("records", "skip", group, stream, *typed).returncode == 2


def test_what_is_left_of_a_key_is_skipped_wherever_it_lies(daemon: Daemon) -> None:
    topic = f"keyed{next(_names)}"
    group = f"by-{topic}"
    ok(daemon.dssctl("topics", "create", topic, "--partitions", "4"))
    ok(daemon.dssctl("groups", "create", f"{group}@{topic}/#", "--start", "earliest"))
    lines = "".join(f'{{"key": "{key}", "payload": "x"}}\n' for key in ("bad", "good") * 3)
    ok(daemon.dssctl("produce", topic, "--input", "jsonl", stdin=lines.encode()))
    skipped = applied(daemon, "records", "skip", group, "--key", "bad")
    assert "3 passed over" in skipped["summary"]
    came = ok(daemon.dssctl("consume", f"{topic}/#", "-g", group, "-n", "3", "-o", "jsonl"))
    assert [json.loads(line)["key"] for line in came.splitlines()] == ["good"] * 3
    refused(daemon.dssctl("records", "skip", group, topic, "--key", "bad", "-y"), 5, "DSS2043")


def test_a_group_that_is_not_there_is_told_before_the_flag_that_is_missing(daemon: Daemon) -> None:
    group = consumed(daemon, records=1, acked=1)
    rewind = ("offsets", "rewind", "nosuch", "--to", "earliest")
    refused(daemon.dssctl(*rewind), 5, "DSS2004")
    asked = daemon.dssctl("offsets", "rewind", group, "--to", "earliest", stdin=b"y\n")
    assert "--yes" in refused(asked, 2, "DSS1102")
    assert floor(daemon, group) == 1


@contextmanager
def frozen_holder(daemon: Daemon) -> Iterator[str]:
    """A group whose member holds its stream and stands still; half of it was acknowledged."""
    group = consumed(daemon, acked=RECORDS // 2)
    consume = ("consume", f"{group}/#", "-g", group, "-o", "jsonl")
    with ProgramProcess(
        ["-m", "dssctl", "--endpoint", daemon.endpoint, *consume],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as member:
        assert member.stdout is not None
        member.stdout.readline()
        member.send_signal(signal.SIGSTOP)
        try:
            yield group
        finally:
            member.kill()
            member.wait()


def begun_rewind(daemon: Daemon, group: str) -> dict[str, Any]:
    """An operation that was applied and not waited for."""
    rewind = ("offsets", "rewind", group, "--to", "earliest", "-y", "--no-wait", "-o", "json")
    return item(daemon.dssctl(*rewind))


@pytest.mark.slow("the lease of a frozen member ends")
def test_who_waits_too_short_is_told_that_the_operation_goes_on(daemon: Daemon) -> None:
    with frozen_holder(daemon) as group:
        number = str(begun_rewind(daemon, group)["number"])
        late = daemon.dssctl("ops", "wait", number, "--timeout", "1")
        waited = item(daemon.dssctl("ops", "wait", number, "-o", "json"))
        assert waited["state"] == "done"
    assert f"dssctl ops wait {number}" in refused(late, 4, "DSS1109")


def test_the_rest_of_an_operation_is_stopped(daemon: Daemon) -> None:
    for _ in range(OPERATIONS_TRIED):
        with frozen_holder(daemon) as group:
            number = str(begun_rewind(daemon, group)["number"])
            done = daemon.dssctl("ops", "cancel", number, "-y", "-o", "json")
        if done.returncode == 0:
            break  # else the lease of the holder had ended by then: it is tried with another one
    assert item(done)["state"] in {"cancelling", "cancelled"}
    assert "cancelled" in refused(daemon.dssctl("ops", "wait", number), 1, "DSS1110")
    listed = ok(daemon.dssctl("ops", "ls", "-g", group, "--state", "cancelled", "-o", "name"))
    assert listed.split() == [number]


def test_a_group_is_paused_and_resumed_and_shows_it(daemon: Daemon) -> None:
    group = consumed(daemon, acked=0)
    assert applied(daemon, "groups", "pause", group, "--reason", "a move")["kind"] == "groups.pause"
    paused = item(daemon.dssctl("groups", "describe", group, "-o", "json"))
    assert (paused["state"], paused["paused"], paused["paused_until"]) == ("paused", True, None)
    until = "2100-01-01T00:00:00Z"
    refused(daemon.dssctl("groups", "pause", group, "--until", until, "-y"), 2, "DSS1010")
    refused(daemon.dssctl("groups", "pause", group, "--until", "-1h", "-y"), 2, "DSS1010")
    applied(daemon, "groups", "pause", group, "--until", "+30m")
    listed = ok(daemon.dssctl("groups", "ls", "-o", "wide"))
    (line,) = [line for line in listed.splitlines() if line.startswith(f"{group} ")]
    assert " paused " in line
    assert "PAUSED-UNTIL" in listed
    resumed = applied(daemon, "groups", "resume", group)
    assert item(daemon.dssctl("groups", "describe", group, "-o", "json"))["paused"] is False
    applied(daemon, "ops", "undo", str(resumed["number"]))
    assert item(daemon.dssctl("groups", "describe", group, "-o", "json"))["paused"] is True


def test_what_is_edited_changes_alone_and_is_taken_back(daemon: Daemon) -> None:
    group = consumed(daemon, acked=0)
    before = item(daemon.dssctl("groups", "describe", group, "-o", "json"))
    edited = applied(daemon, "groups", "edit", group, "--ack-wait", "45s")
    applied(daemon, "groups", "edit", group, "--on-damage", "stall")
    after = item(daemon.dssctl("groups", "describe", group, "-o", "json"))
    assert (after["ack_wait_ms"], after["on_damage"]) == (45_000, "stall")
    applied(daemon, "ops", "undo", str(edited["number"]))
    undone = item(daemon.dssctl("groups", "describe", group, "-o", "json"))
    assert (undone["ack_wait_ms"], undone["on_damage"]) == (before["ack_wait_ms"], "stall")
    refused(daemon.dssctl("groups", "edit", group, "--on-damage", "ignore", "-y"), 2, "DSS1010")


def test_a_topic_keeps_what_no_edit_names(daemon: Daemon) -> None:
    topic = consumed(daemon, acked=0)
    applied(daemon, "topics", "edit", topic, "--retention", "7d", "--retention-bytes", "10G")
    applied(daemon, "topics", "edit", topic, "--no-retention")
    applied(daemon, "topics", "edit", topic, "--durability", "os")
    edited = item(daemon.dssctl("topics", "describe", topic, "-o", "json"))
    assert (edited["retention_ms"], edited["retention_bytes"]) == (None, 10 << 30)
    assert edited["durability"] == "os"
    listed = json.loads(ok(daemon.dssctl("ops", "ls", "--topic", topic, "-o", "json")))["items"]
    assert [each["kind"] for each in listed] == ["topics.edit"] * 3


def test_what_goes_says_what_goes_with_it_and_cannot_be_taken_back(daemon: Daemon) -> None:
    group = consumed(daemon, acked=10)
    plan = item(daemon.dssctl("groups", "rm", group, "--dry-run", "-o", "json"))
    assert (plan["undoable"], plan["nothing_to_do"]) == (False, False)
    assert any("lag of 10 records" in effect for effect in plan["effects"])
    refused(daemon.dssctl("topics", "rm", group, "-y"), 6, "DSS2014")
    gone = item(daemon.dssctl("groups", "rm", group, "-y", "-o", "json"))
    assert gone == {"name": group, "removed": True, "operation": gone["operation"]}
    refused(daemon.dssctl("ops", "undo", str(gone["operation"]), "-y"), 6, "DSS2022")
    again = item(daemon.dssctl("groups", "rm", group, "-y", "--if-exists", "-o", "json"))
    assert again == {"name": group, "removed": False, "operation": None}
    ok(daemon.dssctl("topics", "rm", group, "-y"))
    assert "REMOVED" in ok(daemon.dssctl("topics", "rm", group, "-y", "--if-exists"))


async def listed_and_closed(daemon: Daemon) -> tuple[Completed, Completed]:
    """A client that consumes sees its own session in the listing, and ends it."""
    async with (
        dss_client.connect("leaver", endpoint=daemon.endpoint, session_expiry=60) as client,
        client.subscribe("closed/#"),
    ):
        call = partial(asyncio.to_thread, run_dssctl, "--endpoint", daemon.endpoint, "sessions")
        listed = await call("ls", "-o", "name")
        return listed, await call("close", "leaver", "-y", "-o", "json")


def test_the_session_of_a_client_is_ended(daemon: Daemon) -> None:
    listed, done = asyncio.run(listed_and_closed(daemon))
    assert "leaver" in ok(listed).split()
    closed = item(done)
    assert (closed["kind"], closed["subject"]) == ("sessions.close", "leaver")
    refused(daemon.dssctl("sessions", "close", "leaver", "-y"), 5, "DSS6003")
