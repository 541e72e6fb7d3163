"""What the other tasks do, say, and tell when they fail."""

import asyncio
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from dss_core.errors import DssError, IllegalArgument, TaskFailed
from dssd.events.model import Event
from dssd.schedules.tasks.alert import Alerts
from dssd.schedules.tasks.checkpoint import checkpoint
from dssd.schedules.tasks.lag_check import GroupLag, lag_check
from dssd.schedules.tasks.model import Task, Tasks
from dssd.schedules.tasks.rebalance import rebalance
from dssd.schedules.tasks.retention import retention
from dssd.schedules.tasks.sessions import sessions
from dssd.schedules.tasks.snapshot import snapshot
from dssd.store.sqlite import SqliteStore
from support.played_schedules import HOUR_MS, SUNDAY_NOON_MS, Heard, ScheduledWorks, TwoClocks

LAGS = (
    GroupLag("billing@orders/#", 12_000, True, (SUNDAY_NOON_MS - HOUR_MS) * 1_000),
    GroupLag("audit@orders/#", 20_000, False, None),
    GroupLag("idle@#", 0, True, None),
)


async def run(task: Task, **arguments: str) -> list[str]:
    """What it says; arguments with _ for -."""
    said = Heard()
    given = {name.replace("_", "-"): value for name, value in arguments.items()}
    try:
        await task.work(task.given(given), said)
    except TaskFailed as failed:
        said.append(f"failed: {failed.fields['why']}")
    return said


class LagWorks:
    """A lag check over groups that stand still."""

    def __init__(self, hooks: Path) -> None:
        self.told: list[Event] = []
        self.hooks = hooks
        hooks.mkdir()
        self.task = lag_check(self.lags, Alerts(hooks), self.told.append, TwoClocks())

    async def lags(self) -> tuple[GroupLag, ...]:
        return LAGS

    def hook(self, name: str, script: str, mode: int = 0o700) -> None:
        path = self.hooks / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(mode)


@pytest.fixture
def lag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LagWorks:
    monkeypatch.setattr("dssd.schedules.tasks.alert.ALERT_BACKOFF_S", 0.01)
    return LagWorks(tmp_path / "hooks")


async def test_groups_that_are_too_far_behind_fail_the_check_and_are_told(lag: LagWorks) -> None:
    assert await run(lag.task) == [
        "audit@orders/# is behind by at most 20,000 records",
        "billing@orders/# is behind by 12,000 records, the oldest 1h00m old",
        "failed: 2 of 3 groups are too far behind: audit@orders/# most.",
    ]
    assert [(event.kind.code, event.subject) for event in lag.told] == [
        ("lag.high", "audit@orders/#"),
        ("lag.high", "billing@orders/#"),
    ]


@pytest.mark.parametrize(
    ("arguments", "behind"),
    [
        ({"max_lag": "15000"}, 1),
        ({"max_lag": "20000"}, 0),
        ({"max_lag": "", "max_age": "59m"}, 1),
        ({"max_lag": "", "max_age": "1h"}, 0),
        ({"groups": "bill*"}, 1),
        ({"groups": "billing@orders/#,idle"}, 1),
        ({"groups": "nobody"}, 0),
    ],
)
async def test_what_is_too_far_behind_is_what_the_arguments_say(
    lag: LagWorks, arguments: dict[str, str], behind: int
) -> None:
    await run(lag.task, **arguments)
    assert len(lag.told) == behind


async def test_a_hook_gets_the_groups_as_json_and_no_shell(lag: LagWorks) -> None:
    lag.hook("page", f"cat > {lag.hooks}/got; echo paged")
    said = await run(lag.task, hook="page")
    assert said[2:4] == ["paged", "the hook page was told."]
    got = json.loads((lag.hooks / "got").read_text())
    assert (got["kind"], got["groups"][1]["age_ms"]) == ("LagAlert", HOUR_MS)
    assert [each["group"] for each in got["groups"]] == ["audit@orders/#", "billing@orders/#"]


async def test_a_hook_that_fails_is_tried_again_a_bounded_number_of_times(lag: LagWorks) -> None:
    lag.hook("page", f"echo x >> {lag.hooks}/tries; exit 3")
    said = await run(lag.task, hook="page", attempts="2")
    assert said[-1] == (
        "failed: 2 of 3 groups are too far behind: audit@orders/# most. "
        "And the hook page could not be told: it ended with 3."
    )
    assert (lag.hooks / "tries").read_text() == "x\nx\n"


async def test_a_hook_that_hangs_is_ended_with_all_that_it_started(
    lag: LagWorks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dssd.schedules.tasks.alert.ALERT_TIMEOUT_S", 0.3)
    lag.hook("page", f"sleep 60 & echo $! > {lag.hooks}/pid; wait")
    said = await run(lag.task, hook="page", attempts="1")
    assert said[-1].endswith("it did not end within 0.3 s.")
    child = int((lag.hooks / "pid").read_text())
    for _ in range(100):
        if _state(child) == "Z":
            break
        await asyncio.sleep(0.01)
    else:
        pytest.fail("its child goes on")


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2]
    except FileNotFoundError:
        return "Z"


@pytest.mark.parametrize(
    ("name", "mode", "why"),
    [("gone", 0, "there is no hook"), ("plain", 0o600, "no program"), ("open", 0o777, "everybody")],
)
async def test_a_hook_that_may_not_be_run_is_not(
    lag: LagWorks, name: str, mode: int, why: str
) -> None:
    if mode:
        lag.hook(name, "exit 0", mode)
    if mode == 0o600 and os.access(lag.hooks / name, os.X_OK):
        pytest.skip("this user may run anything")
    assert why in (await run(lag.task, hook=name))[-1]


@pytest.mark.parametrize(
    "arguments",
    [
        {"hook": "../page"},
        {"hook": "/bin/sh"},
        {"hook": "page now"},
        {"url": "file:///etc/passwd"},
        {"attempts": "0"},
        {"attempts": "99"},
        {"max-lag": "-1"},
        {"max-age": "5"},
        {"unknown": "1"},
        {"groups": "x" * 2_000},
    ],
)
def test_arguments_that_break_a_rule_are_refused_before_anything_runs(
    lag: LagWorks, arguments: dict[str, str]
) -> None:
    with pytest.raises(DssError):
        lag.task.given(arguments)


@contextmanager
def answering(*statuses: int) -> Iterator[tuple[str, list[bytes]]]:
    """An address that gives these answers, the last one from then on; and what it got."""
    got: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(statuses[min(len(got), len(statuses)) - 1])
            self.send_header("Location", "http://127.0.0.1:1/")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_given: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/alert", got
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def test_an_alert_is_sent_again_until_it_is_answered(lag: LagWorks) -> None:
    with answering(500, 302, 204) as (address, got):
        said = await run(lag.task, url=address)
    assert said[2:5] == [
        f"attempt 1 of 3, {address}: it was answered by 500",
        f"attempt 2 of 3, {address}: it was answered by 302",
        f"{address} was told.",
    ]
    assert [json.loads(each)["kind"] for each in got] == ["LagAlert"] * 3


async def test_an_address_is_told_though_the_hook_fails(lag: LagWorks) -> None:
    with answering(200) as (address, got):
        said = await run(lag.task, url=address, hook="gone")
    assert len(got) == 1
    assert "And there is no hook" in said[-1]


async def test_an_alert_that_nobody_takes_is_said(lag: LagWorks) -> None:
    said = await run(lag.task, url="http://127.0.0.1:1/", attempts="1")
    assert "could not be told: no answer" in said[-1]


async def test_a_snapshot_is_a_whole_file_for_its_owner_and_only_so_many_are_kept(
    tmp_path: Path,
) -> None:
    clock, directory = TwoClocks(), tmp_path / "support"

    async def gather() -> dict[str, object]:
        return {"daemon": {"state": "serving"}}

    task = snapshot(gather, directory, clock)
    for _ in range(4):
        said = await run(task, keep="2")
        clock.at_ms += 1
    assert said[0].endswith("1 older one went.")
    files = sorted(directory.iterdir())
    assert [path.name for path in files] == [
        f"snapshot-20261122T120000.00{at}000.json" for at in (2, 3)
    ]
    assert json.loads(files[0].read_text()) == {"daemon": {"state": "serving"}}
    assert stat.S_IMODE(files[0].stat().st_mode) == 0o600
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


async def test_a_snapshot_that_cannot_be_written_fails(tmp_path: Path) -> None:
    (tmp_path / "support").write_text("in the way")

    async def gather() -> dict[str, object]:
        return {}

    said = await run(snapshot(gather, tmp_path / "support", TwoClocks()))
    assert said[0].startswith("failed: ")


async def test_the_store_is_written_back_and_keeps_its_reserve(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "store.sqlite")
    for _ in range(20):
        await store.next_id()
    log_bytes = (tmp_path / "store.sqlite-wal").stat().st_size
    [said] = await run(checkpoint(store.write_back))
    assert not said.startswith("0 bytes")
    assert (tmp_path / "store.sqlite-wal").stat().st_size == log_bytes
    await store.next_id()
    await store.close()


async def test_streams_are_spread_where_a_member_has_too_many(works: ScheduledWorks) -> None:
    group = await works.plant.group("$share/billing/orders/#")
    await works.plant.topic("orders", 2)
    task = rebalance(works.plant.groups.groups, works.rebalanced)
    assert await run(task) == ["billing@orders/#: its streams are spread evenly."]
    assert await run(task, groups="others") == []
    assert group.name == "billing"


async def test_retention_and_sessions_say_what_went() -> None:
    left = [3]

    async def enforce() -> int:
        return 2

    async def discard() -> None:
        left[0] = 1

    assert await run(retention(enforce)) == ["2 segments went."]
    assert await run(sessions(discard, lambda: left[0])) == ["2 expired sessions went, 1 stay."]


def test_a_size_has_a_unit() -> None:
    from dssd.schedules.tasks.parsing import size_bytes

    assert size_bytes("16M") == size_bytes("16m") == 16 << 20
    for wrong in ("16", "0M", "", "-1M", "1X"):
        with pytest.raises(IllegalArgument):
            size_bytes(wrong)


def test_tasks_are_listed_by_name() -> None:
    async def work(_given: object, _say: object) -> None:
        pass

    tasks = Tasks([Task("b", "", work), Task("a", "", work)])
    assert [task.name for task in tasks] == ["a", "b"]
