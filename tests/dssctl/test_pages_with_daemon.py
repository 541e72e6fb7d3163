"""The pages of ``describe`` against a daemon process."""

import json
import shlex
import subprocess

import pytest

from support.dssctl_call import Daemon, item, ok
from support.page_blocks import blocks
from support.started_program import ProgramProcess


@pytest.fixture(scope="module")
def read(daemon: Daemon) -> Daemon:
    """A topic of 24 streams, and a group without members that has none of its three records."""
    ok(daemon.dssctl("topics", "create", "orders", "--partitions", "24"))
    ok(daemon.dssctl("groups", "create", "billing@orders/#", "--start", "earliest"))
    ok(daemon.dssctl("produce", "orders", stdin=b"a\nb\nc\n"))
    return daemon


def test_a_groups_page_begins_with_a_verdict_and_ends_with_what_to_do(read: Daemon) -> None:
    done = read.dssctl("groups", "describe", "billing")
    lines = ok(done).decode().splitlines()
    assert lines[0].split() == ["HEALTH", "problem"]
    assert lines[1].split(maxsplit=1) == ["VERDICT", "Nobody is a member of the group."]
    assert lines[-2:] == ["NEXT", "dssctl consume 'orders/#' --group billing"]
    assert "MEMBERS" not in lines
    assert done.stderr == b"note: 20 of 24 grants shown; -o wide shows all\n"
    wide = ok(read.dssctl("groups", "describe", "billing", "-o", "wide"))
    assert wide.count(b"orders/0/") == 24


def test_a_program_gets_the_verdict_with_all_facts(read: Daemon) -> None:
    facts = item(read.dssctl("groups", "describe", "billing", "-o", "json"))
    assert facts["health"] == "problem"
    assert facts["next"] == ["dssctl consume 'orders/#' --group billing"]
    assert facts["stuck"][0]["code"] == "no-members"
    assert (facts["lag"], len(facts["grants"]), facts["leader_since"]) == (3, 24, None)
    for format_ in ("yaml", "csv", "name", "jsonl"):
        assert ok(read.dssctl("groups", "describe", "billing", "-o", format_))


def test_a_topics_page_says_who_reads_it_and_that_nobody_of_them_does(read: Daemon) -> None:
    lines = ok(read.dssctl("topics", "describe", "orders")).decode().splitlines()
    assert lines[0].split() == ["HEALTH", "problem"]
    assert "billing@orders/#: Nobody is a member of the group. (3 records)" in lines[1]
    assert "RETENTION  none: all is kept" in lines
    assert "GROUPS" in lines
    facts = item(read.dssctl("topics", "describe", "orders", "-o", "json"))
    assert [each["group"] for each in facts["groups"]] == ["billing@orders/#"]
    assert len(facts["streams"]) == 24


def test_a_page_of_a_session_that_is_not_there_is_refused(read: Daemon) -> None:
    absent = read.dssctl("sessions", "describe", "nobody")
    assert absent.returncode == 5
    assert b"error DSS6003: " in absent.stderr


def test_a_page_that_is_watched_is_printed_at_each_change_and_ends_with_what_it_is_of(
    daemon: Daemon,
) -> None:
    ok(daemon.dssctl("topics", "create", "watched"))
    describe = ("topics", "describe", "watched", "--watch=0.2s", "-o", "jsonl")
    with ProgramProcess(
        ["-m", "dssctl", "--endpoint", daemon.endpoint, *describe],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as watcher:
        assert watcher.stdout is not None
        before = json.loads(watcher.stdout.readline())
        ok(daemon.dssctl("topics", "edit", "watched", "--retention", "1d", "-y"))
        after = json.loads(watcher.stdout.readline())
        ok(daemon.dssctl("topics", "rm", "watched", "-y"))
        assert watcher.wait() == 5
    assert (before["retention_ms"], after["retention_ms"]) == (None, 86_400_000)


def test_the_readmes_three_commands_lead_from_a_stuck_group_past_a_record(daemon: Daemon) -> None:
    [block] = blocks("README.md", "console", section="A consumer is stuck")
    ok(daemon.dssctl("topics", "create", "bills", "--partitions", "4"))
    ok(daemon.dssctl("groups", "create", "team@bills/#", "--start", "earliest"))
    line = b'{"customer": "ida", "total": "eight"}\n'
    fields = ("--input", "jsonl", "--key-field", "customer", "--payload-field", ".")
    ok(daemon.dssctl("produce", "bills", *fields, stdin=line))
    commands = [
        shlex.split(each.command.replace("orders", "bills").replace("billing", "team"))[1:]
        for each in block.commands()
    ]
    assert [command[:2] for command in commands] == [
        ["groups", "stuck"],
        ["records", "get"],
        ["records", "skip"],
    ]
    stuck, get, skip = commands
    ok(daemon.dssctl(*stuck))
    assert b'"eight"' in ok(daemon.dssctl(*get))
    assert b"1 passed over" in ok(daemon.dssctl(*skip, "-y"))
