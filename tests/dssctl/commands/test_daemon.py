"""The status of a daemon as a table: what is wrong has its own list below it."""

import json
from typing import Any

import pytest

from dss_api.v1 import daemon_pb2
from dss_client import DaemonStatus, Held, PeerHeld, UnreadLoss
from dssctl.invocation import run
from support.blank_values import blank

STATUS = blank(
    DaemonStatus,
    daemon_pb2.DaemonStatus,
    version="1",
    pid=7,
    data_dir="/d",
    listening=("unix:/d/s",),
    state="serving",
    topics=1,
    streams=1,
    groups=1,
    sqlite_version="3",
    boot_id="b",
    unread_records_gone=12,
    errors_in_a_day=3,
    operators_socket="unix:/d/ops.sock",
    held=Held(7, 4_096, 5, 4_096, 3 << 20, 256 << 20),
    peers=(PeerHeld("python3, pid 7, user ann", 6, 4, 3, 2 << 20),),
    unread_losses=(
        UnreadLoss("orders", "billing", "orders/#", 5, exact=True, last_at_ms=0),
        UnreadLoss("orders", "some", "orders/eu/#", 7, exact=False, last_at_ms=0),
    ),
    open_files=30,
    open_files_max=1_024,
    sessions_max=65_536,
    producers=2,
    producers_max=250_000,
)


@pytest.fixture(autouse=True)
def answered(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(*_: object) -> DaemonStatus:
        return STATUS

    monkeypatch.setattr("dssctl.commands.daemon.ask", ask)


def test_losses_stand_below_the_facts_and_say_where_they_are_a_bound(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["daemon", "status"]) == 0
    printed = capsys.readouterr().out
    lines = [line.split() for line in printed.splitlines()]
    assert ["UNREAD-GONE", "12"] in lines
    assert [line[:4] for line in lines if line[:1] == ["orders"]] == [
        ["orders", "billing", "orders/#", "5"],
        ["orders", "some", "orders/eu/#", "<=7"],
    ]


def test_programs_read_each_loss(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["daemon", "status", "-o", "json"]) == 0
    item: dict[str, Any] = json.loads(capsys.readouterr().out)["item"]
    assert item["unread_records_gone"] == 12
    assert item["errors_in_a_day"] == 3
    assert [(loss["group"], loss["records"], loss["exact"]) for loss in item["unread_losses"]] == [
        ("billing", 5, True),
        ("some", 7, False),
    ]


def test_who_holds_most_stands_below_what_all_hold(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["daemon", "status"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["CONNECTIONS", "7", "of", "4096"] in lines
    assert ["IN-DELIVERY", "3.0M"] in lines
    assert ["python3,", "pid", "7,", "user", "ann", "6", "4", "3", "2.0M"] in lines
    assert run(["daemon", "status", "-o", "json"]) == 0
    item: dict[str, Any] = json.loads(capsys.readouterr().out)["item"]
    assert item["peers"][0]["delivery_bytes"] == 2 << 20
    assert (item["connections"], item["connections_max"]) == (7, 4_096)
