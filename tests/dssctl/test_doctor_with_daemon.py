"""``dssctl doctor`` and ``dssctl check`` against a daemon process."""

import json
from typing import Any, Protocol

import pytest

from support.dssctl_call import Completed


class Daemon(Protocol):
    endpoint: str

    def dssctl(self, *arguments: str, stdin: bytes = b"") -> Completed: ...


def ok(done: Completed) -> bytes:
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def levels(done: Completed) -> dict[str, str]:
    items: list[dict[str, Any]] = json.loads(done.stdout)["items"]
    return {each["check"]: each["level"] for each in items}


@pytest.fixture(scope="module")
def stocked(daemon: Daemon) -> Daemon:
    """A topic with a record, and no group."""
    ok(daemon.dssctl("topics", "create", "orders"))
    ok(daemon.dssctl("produce", "orders", stdin=b"a\n"))
    return daemon


def test_a_healthy_daemon_is_well_from_the_client_to_the_groups(stocked: Daemon) -> None:
    done = stocked.dssctl("doctor", "-o", "json")
    found = levels(done)
    ok(done)
    assert "problem" not in found.values()
    for check in ("client.socket", "daemon.reachable", "daemon.clock", "groups.stuck"):
        assert found[check] == "ok"
    assert b"0 problems" in done.stderr
    assert ok(stocked.dssctl("doctor", "--only-trouble", "-o", "name")).count(b"ok") == 0


def test_a_group_that_is_stuck_makes_the_exit_code_1_and_says_what_helps(stocked: Daemon) -> None:
    ok(stocked.dssctl("groups", "create", "lonely@orders/#", "--start", "earliest"))
    try:
        done = stocked.dssctl("doctor")
        assert done.returncode == 1
        assert b"groups.stuck" in done.stdout
        assert b"dssctl consume 'orders/#' --group lonely" in done.stdout
        assert b"note: 1 problem" in done.stderr
        paused = stocked.dssctl("groups", "pause", "lonely", "-y")
        ok(paused)
        assert levels(stocked.dssctl("doctor", "-o", "json"))["groups.stuck"] == "warning"
        assert stocked.dssctl("doctor", "--strict").returncode == 1
    finally:
        ok(stocked.dssctl("groups", "rm", "lonely", "-y"))


def test_without_a_daemon_the_socket_is_named(stocked: Daemon) -> None:
    done = stocked.dssctl("--endpoint", "unix:/nowhere/s", "doctor", "-o", "json")
    assert done.returncode == 1
    assert levels(done) == {
        "client.version": "ok",
        "client.socket": "problem",
        "daemon.reachable": "problem",
    }
