"""``dssctl watch`` against a daemon process."""

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import pytest

from dss_api.v1 import groups_pb2
from dss_api.values import decoded
from dss_client import Group, WatchKey, WatchUpdate
from dssctl.commands.watch import CHANGE_KIND, _Rows
from support.daemon_process import STOP_S_MAX
from support.dssctl_call import Daemon, environment
from support.started_program import ProgramProcess

NOW_US = 1_795_000_000_000_000


@contextmanager
def following(daemon: Daemon, *arguments: str) -> Iterator[IO[bytes]]:
    """What a command prints until it is interrupted."""
    command = ("-m", "dssctl", "--endpoint", daemon.endpoint, *arguments)
    process = ProgramProcess(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    )
    assert process.stdout is not None
    try:
        yield process.stdout
        process.send_signal(signal.SIGINT)
    finally:
        process.communicate(timeout=STOP_S_MAX)
    assert process.returncode == 130


def next_line(out: IO[bytes], **fields: object) -> dict[str, Any]:
    """The next line with these fields."""
    while True:
        line: dict[str, Any] = json.loads(out.readline())
        if all(line[name] == value for name, value in fields.items()):
            return line


def test_changes_are_printed_as_they_come(daemon: Daemon) -> None:
    assert daemon.dssctl("topics", "create", "orders", "--partitions", "1").returncode == 0
    create = ("groups", "create", "g@orders/#", "--start", "earliest")
    with following(daemon, "watch", "groups", "lags", "-g", "g", "-o", "jsonl") as lines:
        assert daemon.dssctl(*create).returncode == 0
        shown = next_line(lines, topic="lags", name="orders/0/0")
        assert (shown["group"], shown["change"], shown["value"]["lag"]) == ("g@orders/#", "is", 0)
        assert shown["at"].endswith("Z")
        assert daemon.dssctl("produce", "orders", stdin=b"x\n").returncode == 0
        while next_line(lines, topic="groups")["value"]["lag"] != 1:
            pass
        assert daemon.dssctl("groups", "rm", "g", "-y").returncode == 0
        assert next_line(lines, change="gone", topic="groups")["value"] is None


def test_what_cannot_be_watched_is_refused(daemon: Daemon) -> None:
    refused = daemon.dssctl("watch", "cats")
    assert refused.returncode == 2
    assert b"groups, members, grants, lags, events, operations, sessions" in refused.stderr


@pytest.fixture
def group() -> Group:
    """A group as a client has it."""
    message = groups_pb2.Group(
        name="g",
        filter="orders/#",
        state="idle",
        kind=groups_pb2.GROUP_KIND_SHARED,
        protocol=groups_pb2.GROUP_PROTOCOL_BORROW,
        on_damage=groups_pb2.ON_DAMAGE_PASS,
    )
    return decoded(message, Group)


def test_a_program_that_wants_names_gets_each_that_changed(group: Group) -> None:
    key = WatchKey("groups", f"{group.name}@{group.filter}", "")
    lag = WatchKey("lags", key.group, "orders/0/0")
    rows, first = _Rows(lambda: NOW_US), WatchUpdate(True, ((key, group),), (lag,), complete=True)
    there = list(map(CHANGE_KIND.identity, rows.of(first)))
    assert there == ["groups/g@orders/#", "lags/g@orders/#/orders/0/0"]
    assert [CHANGE_KIND.identity(row) for row in rows.of(first)] == ["anew", *there]
