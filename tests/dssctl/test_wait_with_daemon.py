"""``dssctl wait`` against a daemon process."""

import json
import subprocess

import pytest

from support.dssctl_call import Completed, Daemon, environment, item, ok
from support.started_program import ProgramProcess


def refused(done: Completed, exit_code: int, code: str) -> str:
    assert done.returncode == exit_code, done.stderr.decode()
    assert f"error {code}: ".encode() in done.stderr
    return done.stderr.decode()


@pytest.fixture(scope="module")
def behind(daemon: Daemon) -> Daemon:
    """A group that has none of two records."""
    ok(daemon.dssctl("topics", "create", "orders"))
    ok(daemon.dssctl("groups", "create", "billing@orders/#", "--start", "earliest"))
    ok(daemon.dssctl("groups", "create", "part@orders/eu/#", "--start", "earliest"))
    ok(daemon.dssctl("produce", "orders", stdin=b"a\nb\n"))
    return daemon


def test_what_holds_already_is_not_waited_for(behind: Daemon) -> None:
    ok(behind.dssctl("wait", "group/billing", "--for", "lag>=2", "--for", "members=0"))
    found = item(behind.dssctl("wait", "group/billing", "--for", "exists", "-o", "json"))
    assert (found["subject"], found["now"]["lag"]) == ("group/billing", 2)
    ok(behind.dssctl("wait", "group/nothing", "--for", "gone"))
    ok(behind.dssctl("wait", "daemon", "--for", "ready"))
    ok(behind.dssctl("wait", "session/nobody", "--for", "gone"))


def test_a_filter_that_takes_no_record_of_a_topic_has_no_lag(behind: Daemon) -> None:
    ok(behind.dssctl("wait", "group/part", "--for", "lag=0", "--timeout", "5s"))


def test_what_does_not_come_in_time_ends_with_4_and_how_it_stands(behind: Daemon) -> None:
    late = behind.dssctl("wait", "group/billing", "--for", "lag=0,members>0", "--timeout", "2s")
    told = refused(late, 4, "DSS1172")
    assert "group/billing did not reach lag=0, members>0 within 2 s" in told
    assert "lag is 2, members is 0." in told


def test_a_wait_ends_when_a_member_has_done_the_work(behind: Daemon) -> None:
    waiting = ProgramProcess(
        [
            *("-m", "dssctl", "--endpoint", behind.endpoint, "wait"),
            *("group/billing", "--for", "lag=0", "--timeout", "20s", "-o", "json"),
        ],
        stdout=subprocess.PIPE,
        env=environment(),
    )
    with waiting:
        ok(behind.dssctl("consume", "orders/#", "--group", "billing", "-n", "2"))
        assert waiting.stdout is not None
        assert json.load(waiting.stdout)["item"]["now"]["lag"] == 0
    assert waiting.returncode == 0


def test_an_operation_is_waited_for_until_it_is_done(behind: Daemon) -> None:
    pause = behind.dssctl("groups", "pause", "part", "-y", "-o", "json")
    number = item(pause)["number"]
    ok(behind.dssctl("wait", f"op/{number}", "--for", "done"))
    refused(behind.dssctl("wait", f"op/{number}", "--for", "state=failed"), 1, "DSS1110")
    ok(behind.dssctl("wait", "group/part", "--for", "paused,health=attention"))


def test_what_cannot_be_waited_for_is_refused(behind: Daemon) -> None:
    refused(behind.dssctl("wait", "group/none", "--for", "lag=0"), 5, "DSS2004")
    refused(behind.dssctl("wait", "tree/oak", "--for", "gone"), 2, "DSS1010")
    refused(behind.dssctl("wait", "group", "--for", "gone"), 2, "DSS1010")
    refused(behind.dssctl("wait", "daemon/x", "--for", "ready"), 2, "DSS1010")
    refused(behind.dssctl("wait", "op/x", "--for", "done"), 2, "DSS1010")
    refused(behind.dssctl("wait", "op/999", "--for", "done"), 5, "DSS2021")


def test_a_daemon_that_is_not_there_is_stopped_and_not_ready(behind: Daemon) -> None:
    nowhere = ("--endpoint", "unix:/nowhere/s")
    ok(behind.dssctl(*nowhere, "wait", "daemon", "--for", "stopped"))
    late = behind.dssctl(*nowhere, "wait", "daemon", "--for", "ready", "--timeout", "300ms")
    assert "it is not there" in refused(late, 4, "DSS1172")
