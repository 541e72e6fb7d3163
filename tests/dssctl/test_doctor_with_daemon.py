"""``dssctl doctor`` and ``dssctl check`` against a daemon process."""

import json
from typing import Any

import pytest

from support.dssctl_call import Completed, Daemon, ok


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


def test_a_check_exits_as_nagios_counts_and_prints_a_line(stocked: Daemon) -> None:
    ok(stocked.dssctl("groups", "create", "behind@orders/#", "--start", "earliest"))
    try:
        fine = stocked.dssctl("check", "lag", "--warn", "5", "--group", "behind")
        assert fine.returncode == 0
        assert fine.stdout == b"OK: lag: behind@orders/# 1 | 'behind@orders/#'=1;5;\n"
        warned = stocked.dssctl("check", "lag", "--warn", "1", "--crit", "5", "-o", "nagios")
        assert warned.returncode == 1
        assert warned.stdout.startswith(b"WARNING: lag: behind@orders/# 1 >= 1 |")
        few = stocked.dssctl("check", "members", "--crit", "1", "-o", "json")
        assert few.returncode == 2
        assert json.loads(few.stdout)["item"]["status"] == "critical"
        assert stocked.dssctl("check", "oldest", "--crit", "1ms").returncode == 2
        still = stocked.dssctl("check", "stuck")
        assert still.returncode == 2
        assert b"Nobody is a member of the group." in still.stdout
        text = ok(stocked.dssctl("check", "lag", "--crit", "1k", "-o", "prometheus"))
        assert b'dss_check_lag_records{of="behind@orders/#"} 1\n' in text
    finally:
        ok(stocked.dssctl("groups", "rm", "behind", "-y"))


def test_the_daemon_and_its_disk_are_checked(stocked: Daemon) -> None:
    ok(stocked.dssctl("check", "daemon", "--crit", "30s"))
    ok(stocked.dssctl("check", "disk", "--warn", "1K", "--crit", "0B"))
    assert stocked.dssctl("check", "disk", "--warn", "99.999%", "--crit", "0%").returncode == 1


def test_what_cannot_be_asked_is_unknown_and_an_absent_daemon_critical(stocked: Daemon) -> None:
    nowhere = ("--endpoint", "unix:/nowhere/s", "check")
    unknown = stocked.dssctl(*nowhere, "lag", "--warn", "1")
    assert unknown.returncode == 3
    assert unknown.stdout.startswith(b"UNKNOWN: lag: DSS5001: ")
    absent = stocked.dssctl(*nowhere, "daemon")
    assert absent.returncode == 2
    assert absent.stdout.startswith(b"CRITICAL: daemon: no answer (DSS5001: ")
    assert stocked.dssctl("check", "lag", "--warn", "1", "-g", "none").returncode == 3
    assert stocked.dssctl("check", "lag").returncode == 2
