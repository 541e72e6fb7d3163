"""Whatever is wrong with a group, every page says the same of it."""

import json
from collections.abc import Iterator
from typing import Any, Protocol

import pytest

import dss_client.sync
from support.dssctl_call import Completed

FAILURES = 6
"""More than `groups stuck` names a record for."""
WAIT_S = 20.0
WELL, PAUSED, ALONE, FAILING = "well", "paused", "alone", "failing"
HEALTH = {WELL: "healthy", PAUSED: "attention", ALONE: "problem", FAILING: "problem"}


class Daemon(Protocol):
    endpoint: str

    def dssctl(self, *arguments: str, stdin: bytes = b"") -> Completed: ...


def ok(done: Completed) -> bytes:
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def items(done: Completed) -> list[dict[str, Any]]:
    return list(json.loads(done.stdout)["items"])


@pytest.fixture(scope="module")
def troubled(daemon: Daemon) -> Iterator[Daemon]:
    """Four groups of a topic; a member of one refuses its only record again and again."""
    ok(daemon.dssctl("topics", "create", "orders"))
    for name in (PAUSED, ALONE, FAILING):
        ok(daemon.dssctl("groups", "create", f"{name}@orders/#", "--start", "earliest"))
    ok(daemon.dssctl("produce", "orders", stdin=b"bad\n"))
    ok(daemon.dssctl("groups", "create", f"{WELL}@orders/#"))
    ok(daemon.dssctl("groups", "pause", PAUSED, "-y"))
    with (
        dss_client.sync.connect(endpoint=daemon.endpoint) as client,
        client.subscribe(f"$share/{FAILING}/orders/#") as subscription,
    ):
        for _ in range(FAILURES):
            for record in subscription.fetch(1, timeout=WAIT_S):
                record.nak(delay=0)
        yield daemon


def test_every_list_and_page_has_the_same_verdict(troubled: Daemon) -> None:
    listed = {each["name"]: each for each in items(troubled.dssctl("groups", "ls", "-o", "json"))}
    described = {
        name: json.loads(ok(troubled.dssctl("groups", "describe", name, "-o", "json")))["item"]
        for name in HEALTH
    }
    assert {name: each["health"] for name, each in listed.items()} == HEALTH
    assert {name: each["health"] for name, each in described.items()} == HEALTH
    chosen = ok(troubled.dssctl("groups", "ls", "-o", "name", "--filter", "health=problem"))
    assert chosen.decode().split() == [f"{ALONE}@orders/#", f"{FAILING}@orders/#"]
    assert listed[FAILING]["drain_ms"] is None, "nobody can say when a record is done that fails"
    assert "failed" in described[FAILING]["verdict"]


def test_the_doctor_and_the_check_name_what_the_lists_call_a_problem(troubled: Daemon) -> None:
    found = items(troubled.dssctl("doctor", "-o", "json"))
    levels = {
        each["text"].partition("@")[0]: each["level"]
        for each in found
        if each["check"] == "groups.stuck"
    }
    assert levels == {PAUSED: "warning", ALONE: "problem", FAILING: "problem"}
    assert {each["level"] for each in found if each["check"] == "groups.behind"} == {"ok"}
    for name, health in HEALTH.items():
        done = troubled.dssctl("check", "stuck", "-g", name)
        assert done.returncode == (2 if health == "problem" else 0), done.stdout
