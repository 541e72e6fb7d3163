"""Completion with a real daemon: lists leave names, and a first question fetches them."""

import subprocess
import sys
from pathlib import Path

import pytest

from dssctl.completing import answering
from support.dssctl_call import Daemon, environment


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def names(daemon: Daemon, kind: str, prefix: str = "") -> list[str]:
    done = daemon_complete(daemon.endpoint, kind, prefix)
    return [line.partition("\t")[0] for line in done.stdout.splitlines()]


def daemon_complete(endpoint: str, kind: str, prefix: str) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(
        [sys.executable, "-m", "dssctl", "__complete", kind, prefix, "--endpoint", endpoint],
        capture_output=True,
        check=True,
        text=True,
        env=environment(),
    )
    assert done.stderr == ""
    return done


def test_a_list_leaves_its_names_for_the_next_key(daemon: Daemon) -> None:
    daemon.dssctl("topics", "create", "orders", "--partitions", "2")
    daemon.dssctl("groups", "create", "billing@orders/#")
    daemon.dssctl("topics", "ls")
    daemon.dssctl("groups", "ls", "-o", "json")
    assert names(daemon, "topics", "ord") == ["orders"]
    assert names(daemon, "streams", "orders/0/") == ["orders/0/0", "orders/0/1"]
    assert names(daemon, "groups") == ["billing"]


def test_a_list_of_some_replaces_the_names_of_none(daemon: Daemon) -> None:
    daemon.dssctl("groups", "create", "audit@bills/#", "--if-not-exists")
    daemon.dssctl("groups", "ls")
    daemon.dssctl("groups", "ls", "--filter", "name=nobody")
    assert "audit" in names(daemon, "groups")


def test_the_first_question_fetches_the_names(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    daemon.dssctl("topics", "create", "bills", "--if-not-exists")
    # A person waits for a moment only; here the machine may be slow.
    monkeypatch.setattr(answering, "NAMES_FIRST_WAIT_S", 30.0)
    assert answering.answer(["topics", "bil", "--endpoint", daemon.endpoint]) == 0
    assert capfd.readouterr() == ("bills\n", "")


def test_a_daemon_that_is_away_has_no_names_and_says_nothing() -> None:
    assert daemon_complete("unix:/nowhere/s", "topics", "").stdout == ""
