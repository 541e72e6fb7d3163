"""Commands that change something, against a daemon process."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import pytest

import dss_client
from dssctl.settings import Format
from support.command_here import CommandHere, Done

RECORDS = 20
OPERATIONS_TRIED = 5
_names = count(1)


class Process(Protocol):
    endpoint: str

    def dssctl(
        self, *arguments: str, stdin: bytes = b"", timeout_s: float = 30.0
    ) -> "subprocess.CompletedProcess[bytes]": ...


@pytest.fixture(scope="module")
def commands(daemon: Process) -> CommandHere:
    """Commands against a daemon process."""
    return CommandHere(daemon.endpoint)


def ok(done: Done, code: int = 0) -> str:
    assert done.returncode == code, done.stderr.decode()
    assert b"\x1b" not in done.stdout + done.stderr
    return done.stdout.decode()


def item(done: Done, code: int = 0) -> dict[str, Any]:
    document = json.loads(ok(done, code))
    assert document["apiVersion"] == "dssctl/v1"
    return dict(document["item"])


def refused(done: Done, exit_code: int, code: str) -> str:
    said = done.stderr.decode()
    assert done.returncode == exit_code, said
    assert f"error {code}: " in said
    assert "Traceback" not in said
    return said


async def published(commands: CommandHere, topic: str, records: int) -> None:
    async with (
        dss_client.connect(endpoint=commands.endpoint) as client,
        client.producer(topic) as producer,
    ):
        for at in range(records):
            producer.send_nowait(b"%d" % at)


def consumed(commands: CommandHere, records: int = RECORDS, acked: int = RECORDS) -> str:
    """A group of its own over a topic of one stream of its own, that has acknowledged so many."""
    name = f"team{next(_names)}"
    ok(commands.dssctl("topics", "create", name))
    ok(commands.dssctl("groups", "create", f"{name}@{name}/#", "--start", "earliest"))
    asyncio.run(published(commands, name, records))
    if acked:
        ok(commands.dssctl("consume", f"{name}/#", "-g", name, "-n", str(acked), "-o", "jsonl"))
    return name


def notes(done: Done) -> list[str]:
    """What was said beside the data, to a program."""
    return [json.loads(line)["message"] for line in done.stderr.splitlines()]


def floor(commands: CommandHere, group: str) -> int:
    (grant,) = json.loads(ok(commands.dssctl("grants", "ls", "-g", group, "-o", "json")))["items"]
    return int(grant["floor"])


def applied(commands: CommandHere, *arguments: str) -> dict[str, Any]:
    """What an operation was, that is done."""
    operation = item(commands.dssctl(*arguments, "-y", "-o", "json"))
    assert operation["state"] == "done"
    return operation


def test_a_dry_run_shows_the_plan_and_changes_nothing(commands: CommandHere) -> None:
    group = consumed(commands)
    rewind = ("offsets", "rewind", group, "--to", "earliest", "--dry-run")
    printed = ok(commands.dssctl(*rewind))
    assert ["STREAM", "FLOOR", "TARGET", "AGAIN", "PASSED", "HOLDER"] in [
        line.split() for line in printed.splitlines()
    ]
    assert f"{group}/0/0" in printed
    assert "EFFECTS\n20 records come again" in printed
    plan = item(commands.dssctl(*rewind, "-o", "json", "--detailed-exitcode"), 10)
    (stream,) = plan["streams"]
    assert (plan["kind"], plan["revision"], plan["undoable"]) == ("offsets.rewind", 0, True)
    assert (stream["floor"], stream["target"], stream["again"]) == (RECORDS, 0, RECORDS)
    assert floor(commands, group) == RECORDS
    assert json.loads(ok(commands.dssctl("ops", "ls", "-g", group, "-o", "json")))["items"] == []


def test_what_is_applied_is_shown_listed_and_taken_back_once(commands: CommandHere) -> None:
    group = consumed(commands)
    done = commands.dssctl("offsets", "rewind", group, "--to", "=5", "-y", "--reason", "a ticket")
    assert f"{group}/0/0" in ok(done)
    said = done.stderr.decode()
    assert "15 records come again" in said, "the plan is shown beside the data"
    (listed,) = json.loads(ok(commands.dssctl("ops", "ls", "-g", group, "-o", "json")))["items"]
    number = str(listed["number"])
    assert f"note: undo with: dssctl ops undo {number}\n" in said
    assert (listed["reason"], listed["state"]) == ("a ticket", "done")
    assert floor(commands, group) == 5
    shown = item(commands.dssctl("ops", "show", number, "-o", "json"))
    assert [each["floor_before"] for each in shown["streams"]] == [RECORDS]
    assert [each["floor_after"] for each in shown["streams"]] == [5]
    assert "FLOOR-BEFORE" in ok(commands.dssctl("ops", "show", number))
    assert item(commands.dssctl("ops", "wait", number, "-o", "json"))["state"] == "done"
    undone = applied(commands, "ops", "undo", number)
    assert undone["undoes"] == int(number)
    assert floor(commands, group) == RECORDS
    assert refused(commands.dssctl("ops", "undo", number, "-y"), 6, "DSS2022")
    refused(commands.dssctl("ops", "cancel", number, "-y"), 6, "DSS2023")
    refused(commands.dssctl("ops", "show", "999999"), 5, "DSS2021")


@pytest.mark.parametrize("output", Format)
def test_plans_and_operations_have_every_format(output: Format, commands: CommandHere) -> None:
    group = consumed(commands)
    rewind = ("offsets", "rewind", group, "--to", "earliest", "-o", output)
    planned = ok(commands.dssctl(*rewind, "--dry-run"))
    done = commands.dssctl(*rewind, "-y")
    listed = ok(commands.dssctl("ops", "ls", "-g", group, "-o", output))
    (number,) = ok(commands.dssctl("ops", "ls", "-g", group, "-o", "name")).split()
    shown = ok(commands.dssctl("ops", "show", number, "-o", output))
    assert group in planned
    for operation in (ok(done), listed, shown):
        assert number in operation
    if output is not Format.NAME:
        assert all("offsets.rewind" in each for each in (planned, ok(done), listed, shown))


def test_a_plan_in_a_file_is_applied_once_and_only_while_nothing_moved(
    commands: CommandHere, tmp_path: Path
) -> None:
    group = consumed(commands)
    plan = tmp_path / "plan.json"
    dry = commands.dssctl("offsets", "rewind", group, "--by", "8", "--dry-run", "-o", "json")
    plan.write_text(ok(dry))
    assert applied(commands, "ops", "apply", str(plan))["kind"] == "offsets.rewind"
    assert floor(commands, group) == RECORDS - 8
    again = commands.dssctl("ops", "apply", str(plan), "-y")
    assert "operation" in refused(again, 6, "DSS2019")
    assert again.stdout == b""
    refused(commands.dssctl("ops", "apply", str(plan), "--dry-run"), 6, "DSS2019")
    assert floor(commands, group) == RECORDS - 8


def test_a_file_that_is_no_plan_is_refused(commands: CommandHere, tmp_path: Path) -> None:
    group = consumed(commands, records=1, acked=0)
    offsets = tmp_path / "offsets.json"
    offsets.write_text(ok(commands.dssctl("offsets", "export", group)))
    assert "its kind is not OperationPlan" in refused(
        commands.dssctl("ops", "apply", str(offsets), "-y"), 2, "DSS1108"
    )
    broken = tmp_path / "broken.json"
    broken.write_text(
        json.dumps({"kind": "OperationPlan", "item": {"change": {"x": 1}, "revision": 0}})
    )
    refused(commands.dssctl("ops", "apply", str(broken), "-y"), 2, "DSS1108")


def test_a_revision_that_moved_is_a_conflict_and_nothing_changes(commands: CommandHere) -> None:
    group = consumed(commands)
    applied(commands, "offsets", "rewind", group, "--by", "3", "--if-revision", "0")
    stale = ("offsets", "rewind", group, "--to", "earliest", "--if-revision", "0")
    said = refused(commands.dssctl(*stale, "-y"), 6, "DSS2019")
    assert "offsets.rewind" in said, "it says what came between"
    refused(commands.dssctl(*stale, "--dry-run"), 6, "DSS2019")
    assert floor(commands, group) == RECORDS - 3
    (listed,) = json.loads(ok(commands.dssctl("groups", "ls", "-o", "json")))["items"][-1:]
    described = item(commands.dssctl("groups", "describe", group, "-o", "json"))
    assert described["revision"] == 1
    assert "revision" in listed


def test_a_command_that_is_repeated_with_its_id_does_nothing_again(
    commands: CommandHere,
) -> None:
    group = consumed(commands)
    rewind = ("offsets", "rewind", group, "--by", "2", "--op-id", f"ticket {group}")
    first = applied(commands, *rewind)
    done = commands.dssctl(*rewind, "-y", "-o", "json")
    assert item(done)["number"] == first["number"]
    assert "applied under this id already" in notes(done)[0]
    assert floor(commands, group) == RECORDS - 2


def test_where_there_is_nothing_to_do_no_operation_is_made(commands: CommandHere) -> None:
    group = consumed(commands)
    done = commands.dssctl("offsets", "skip", group, "--to", "latest", "-y", "-o", "json")
    assert item(done)["nothing_to_do"] is True
    assert notes(done) == ["nothing was changed: there is nothing to do"]
    dry = commands.dssctl("offsets", "skip", group, "--to", "latest", *_DRY, "--detailed-exitcode")
    ok(dry)
    assert json.loads(ok(commands.dssctl("ops", "ls", "-g", group, "-o", "json")))["items"] == []


_DRY = ("--dry-run", "-o", "json")


def test_a_cursor_goes_both_ways_by_records_by_time_and_to_a_place(commands: CommandHere) -> None:
    group = consumed(commands, acked=10)
    stream = ("--stream", f"{group}/0/0")
    applied(commands, "offsets", "skip", group, "--by", "4", *stream)
    assert floor(commands, group) == 14
    applied(commands, "offsets", "seek", group, "--by", "-6", *stream)
    assert floor(commands, group) == 8
    applied(commands, "offsets", "seek", group, "--to", "=12")
    assert floor(commands, group) == 12
    applied(commands, "offsets", "rewind", group, "--by", "1h")
    assert floor(commands, group) == 0
    applied(commands, "offsets", "skip", group, "--to", "now")
    assert floor(commands, group) == RECORDS
    applied(commands, "offsets", "rewind", group, "--to", "-1h")
    assert floor(commands, group) == 0
    listed = commands.dssctl("ops", "ls", "-g", group, "-n", "2", "-o", "name")
    assert len(ok(listed).split()) == 2
    assert b"older ones are left out" in listed.stderr
    assert commands.dssctl("ops", "ls", "-g", group, "-n", "6").stderr == b""
    refused(commands.dssctl("offsets", "seek", group, "--to", "=99", *_DRY[:1]), 2, "DSS2015")


def test_a_stream_that_the_group_does_not_read_is_not_found(commands: CommandHere) -> None:
    group = consumed(commands, records=1, acked=0)
    other = ("--to", "earliest", "--stream", "other/0/0")
    refused(commands.dssctl("offsets", "rewind", group, *other, "-y"), 5, "DSS2025")
    refused(commands.dssctl("offsets", "export", group, *other[2:]), 5, "DSS2025")
    refused(commands.dssctl("offsets", "rewind", "nobody", "--to", "earliest", "-y"), 5, "DSS2004")


def test_exported_offsets_put_another_group_at_the_same_place(
    commands: CommandHere, tmp_path: Path
) -> None:
    group = consumed(commands, acked=10)
    applied(commands, "records", "skip", group, f"{group}/0/0", "15", "--count", "2")
    exported = tmp_path / "offsets.json"
    exported.write_text(ok(commands.dssctl("offsets", "export", group)))
    (stream,) = json.loads(exported.read_text())["item"]["streams"]
    assert (stream["floor"], stream["acked"], stream["end"]) == (10, [[15, 17]], RECORDS)
    ok(commands.dssctl("groups", "create", f"copy-{group}@{group}/#"))
    applied(commands, "offsets", "import", f"copy-{group}", str(exported))
    table = ok(commands.dssctl("offsets", "export", f"copy-{group}", "-o", "wide"))
    assert "15-16" in table
    imported = item(commands.dssctl("offsets", "export", f"copy-{group}"))
    assert imported["streams"] == [stream]
    stranger = consumed(commands, records=1, acked=0)
    refused(commands.dssctl("offsets", "import", stranger, str(exported), "-y"), 5, "DSS2025")


def test_a_record_is_acknowledged_by_hand_with_a_reason(commands: CommandHere) -> None:
    group = consumed(commands, acked=10)
    skip = ("records", "skip", group, f"{group}/0/0", "10")
    operation = applied(commands, *skip, "--reason", "poison")
    assert (operation["kind"], operation["reason"]) == ("records.skip", "poison")
    assert floor(commands, group) == 11
    out_of_range = ("records", "skip", group, f"{group}/0/0", "99", "-y")
    refused(commands.dssctl(*out_of_range), 2, "DSS2015")


@contextmanager
def frozen_holder(commands: CommandHere) -> Iterator[str]:
    """A group whose member holds its stream and stands still; half of it was acknowledged."""
    group = consumed(commands, acked=RECORDS // 2)
    consume = ("consume", f"{group}/#", "-g", group, "-o", "jsonl")
    with subprocess.Popen(
        [sys.executable, "-m", "dssctl", "--endpoint", commands.endpoint, *consume],
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


def begun_rewind(commands: CommandHere, group: str) -> dict[str, Any]:
    """An operation that was applied and not waited for."""
    rewind = ("offsets", "rewind", group, "--to", "earliest", "-y", "--no-wait", "-o", "json")
    return item(commands.dssctl(*rewind))


@pytest.mark.slow("the lease of a frozen member ends")
def test_who_waits_too_short_is_told_that_the_operation_goes_on(commands: CommandHere) -> None:
    with frozen_holder(commands) as group:
        number = str(begun_rewind(commands, group)["number"])
        late = commands.dssctl("ops", "wait", number, "--timeout", "1")
        waited = item(commands.dssctl("ops", "wait", number, "-o", "json"))
        assert waited["state"] == "done"
    assert f"dssctl ops wait {number}" in refused(late, 4, "DSS1109")


def test_the_rest_of_an_operation_is_stopped(commands: CommandHere) -> None:
    for _ in range(OPERATIONS_TRIED):
        with frozen_holder(commands) as group:
            number = str(begun_rewind(commands, group)["number"])
            done = commands.dssctl("ops", "cancel", number, "-y", "-o", "json")
        if done.returncode == 0:
            break  # else the lease of the holder had ended by then: it is tried with another one
    assert item(done)["state"] in {"cancelling", "cancelled"}
    assert "cancelled" in refused(commands.dssctl("ops", "wait", number), 1, "DSS1110")
    listed = ok(commands.dssctl("ops", "ls", "-g", group, "--state", "cancelled", "-o", "name"))
    assert listed.split() == [number]
