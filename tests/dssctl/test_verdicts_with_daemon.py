"""Whatever is wrong with a group, a topic or a session, every page says the same of it."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

import dss_client
import dss_client.sync
from dssctl.top.model.standing import look_of, word_of
from support.dssctl_call import Completed, Daemon, ok

FAILURES = 6
"""More than `groups stuck` names a record for."""
WAIT_S = 20.0
KEYS = 6
"""Enough that both streams of a topic have one."""
WELL, PAUSED, ALONE, FAILING, TWICE = "well", "paused", "alone", "failing", "twice"
HEALTH = {
    WELL: "healthy",
    PAUSED: "attention",
    ALONE: "problem",
    FAILING: "problem",
    TWICE: "problem",
}
LOOKS = {"healthy": {"good", "dim"}, "attention": {"warn"}, "problem": {"bad"}}


def items(done: Completed) -> list[dict[str, Any]]:
    return list(json.loads(done.stdout)["items"])


def page(daemon: Daemon, noun: str, name: str) -> dict[str, Any]:
    return dict(json.loads(ok(daemon.dssctl(noun, "describe", name, "-o", "json")))["item"])


def refuse(subscription: dss_client.sync.Subscription, records: int) -> None:
    """So many records, each again and again."""
    times: Counter[bytes | None] = Counter()
    while len(times) < records or min(times.values()) < FAILURES:
        for record in subscription.fetch(1, timeout=WAIT_S):
            record.nak(delay=0)
            times[record.key] += 1


@pytest.fixture(scope="module")
def troubled(daemon: Daemon) -> Iterator[Daemon]:
    """Groups with a fault each, and a schedule whose run failed."""
    ok(daemon.dssctl("topics", "create", "orders"))
    ok(daemon.dssctl("topics", "create", "pairs", "--partitions", "2"))
    for name in (PAUSED, ALONE, FAILING):
        ok(daemon.dssctl("groups", "create", f"{name}@orders/#", "--start", "earliest"))
    ok(daemon.dssctl("groups", "create", f"{TWICE}@pairs/#", "--start", "earliest"))
    ok(daemon.dssctl("produce", "orders", stdin=b"bad\n"))
    ok(daemon.dssctl("groups", "create", f"{WELL}@orders/#"))
    ok(daemon.dssctl("groups", "pause", PAUSED, "-y"))
    check = ("--task", "lag-check", "--arg", "max-lag=1", "--cron", "@yearly", "-y")
    ok(daemon.dssctl("schedules", "create", "late", *check))
    with dss_client.sync.connect(endpoint=daemon.endpoint, client_id="worker") as client:
        with client.producer("pairs") as producer:
            for number in range(KEYS):
                producer.send(b"bad", key=b"%d" % number)
        with (
            client.subscribe(f"$share/{FAILING}/orders/#") as one,
            client.subscribe(f"$share/{TWICE}/pairs/#") as two,
        ):
            assert daemon.dssctl("schedules", "trigger", "late").returncode
            refuse(one, 1)
            refuse(two, KEYS)
            yield daemon


def test_every_list_and_page_has_the_same_verdict(troubled: Daemon) -> None:
    listed = {each["name"]: each for each in items(troubled.dssctl("groups", "ls", "-o", "json"))}
    described = {name: page(troubled, "groups", name) for name in HEALTH}
    assert {name: each["health"] for name, each in listed.items()} == HEALTH
    assert {name: each["health"] for name, each in described.items()} == HEALTH
    chosen = ok(troubled.dssctl("groups", "ls", "-o", "name", "--filter", "health=problem"))
    bad = [f"{ALONE}@orders/#", f"{FAILING}@orders/#", f"{TWICE}@pairs/#"]
    assert chosen.decode().split() == bad
    for name, health in HEALTH.items():
        halted = health != "healthy"
        assert not halted or listed[name]["drain_ms"] is None, "nobody can say when it drains"
    assert "failed" in described[FAILING]["verdict"]
    assert "So stands 1 more stream." in described[TWICE]["verdict"]


async def test_the_dashboard_is_told_the_same(troubled: Daemon) -> None:
    seen: dict[str, dss_client.Group] = {}
    async with dss_client.connect(endpoint=troubled.endpoint) as client:
        async for update in client.watch("groups"):
            groups = (value for _, value in update.changed if isinstance(value, dss_client.Group))
            seen |= {each.name: each for each in groups}
            if update.complete:
                break
        found = await client.daemon.findings()
    assert {name: each.health for name, each in seen.items()} == HEALTH
    for name, health in HEALTH.items():
        assert look_of(seen[name]) in LOOKS[health]
        assert (word_of(seen[name]) == "stuck") is (health == "problem")
    assert {each.level for each in found if each.code == "schedules.last-run"} == {"problem"}


def test_the_doctor_and_the_check_name_what_the_lists_call_a_problem(troubled: Daemon) -> None:
    found = items(troubled.dssctl("doctor", "-o", "json"))
    stuck = [each for each in found if each["check"] == "groups.stuck"]
    levels = {each["text"].partition("@")[0]: each["level"] for each in stuck}
    told = {"attention": "warning", "problem": "problem"}
    assert levels == {name: told[health] for name, health in HEALTH.items() if health in told}
    assert {each["level"] for each in found if each["check"] == "groups.behind"} == {"ok"}
    assert {each["level"] for each in found if each["check"] == "schedules.last-run"} == {"problem"}
    for name, health in HEALTH.items():
        done = troubled.dssctl("check", "stuck", "-g", name)
        assert done.returncode == (2 if health == "problem" else 0), done.stdout


def test_pages_of_topics_and_sessions_name_the_group_that_does_not_move(troubled: Daemon) -> None:
    for noun, name in (("topics", "orders"), ("topics", "pairs"), ("sessions", "worker")):
        found = page(troubled, noun, name)
        assert found["health"] == "problem"
        assert any(bad in found["verdict"] for bad in (ALONE, FAILING, TWICE))
