"""``dssctl support gather`` against a daemon process."""

import json
import re
import stat
import tarfile
from pathlib import Path
from typing import Any

import pytest

from support.dssctl_call import Daemon, ok, run_dssctl


def contents(path: Path) -> dict[str, str]:
    with tarfile.open(path) as archive:
        files = {each.name: archive.extractfile(each) for each in archive.getmembers()}
        read = {name: file.read().decode() for name, file in files.items() if file is not None}
    folder = path.name.removesuffix(".tar.gz")
    return {name.removeprefix(f"{folder}/"): text for name, text in read.items()}


@pytest.fixture(scope="module")
def stocked(daemon: Daemon) -> Daemon:
    """A topic with a record, a group, and a topic that only events still name."""
    ok(daemon.dssctl("topics", "create", "invoices"))
    ok(daemon.dssctl("groups", "create", "billing@invoices/#", "--start", "earliest"))
    ok(daemon.dssctl("topics", "create", "vanished"))
    ok(daemon.dssctl("topics", "rm", "vanished", "-y"))
    ok(daemon.dssctl("produce", "invoices", "--key", "KEY-7", stdin=b"PAYLOAD-7\n"))
    return daemon


def test_a_bundle_tells_how_all_stands_and_has_no_payload(stocked: Daemon, tmp_path: Path) -> None:
    path, log = tmp_path / "b.tar.gz", tmp_path / "dssd.log"
    log.write_text("one\ntwo of invoices\n")
    done = stocked.dssctl("support", "gather", str(path), "--log", str(log), "-o", "json")
    item: dict[str, Any] = json.loads(ok(done))["item"]
    assert item["bytes"] == path.stat().st_size
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    files = contents(path)
    for name in ("status.json", "topics.jsonl", "doctor.jsonl", "versions.json", "process.txt"):
        assert files.get(name), files["manifest.json"]
    assert json.loads(files["groups.jsonl"])["name"] == "billing"
    status = json.loads(files["status.json"])
    assert 0 < status["open_files"] < status["open_files_max"]
    assert 0 < status["disk_free_bytes"] < status["disk_size_bytes"]
    assert 0 < status["producers"] < status["producers_max"]
    assert status["started_at_ms"] < status["now_us"] // 1_000
    assert files["logs/dssd.log"] == "one\ntwo of invoices\n"
    manifest = json.loads(files["manifest.json"])
    assert {each["name"] for each in manifest["entries"]} == files.keys() - {"manifest.json"}
    assert not any("PAYLOAD-7" in text or "KEY-7" in text for text in files.values())
    told = run_dssctl("support", "analyze", str(path), "-o", "jsonl")
    found = {each["check"]: each for each in map(json.loads, told.stdout.splitlines())}
    assert found["bundle.whole"]["level"] == "ok"
    assert not {"bundle.format", "bundle.unknown"} & found.keys(), "of this version all is known"
    assert found["groups.stuck"]["level"] == "problem"
    assert told.returncode == 1


def test_no_secret_that_anybody_gave_is_in_a_bundle_a_snapshot_or_a_listing(
    stocked: Daemon, tmp_path: Path
) -> None:
    """Canaries stand in every field that a user fills and that is no name."""
    dssctl, let_in = stocked.dssctl, "http://127.0.0.1:1/CANARY0a1b2c3d4e5f6g7h8i9"
    why = ("-y", "--reason", "CANARY-WHY")
    record = ("--key", "CANARY-KEY", "--header", "CANARY-NAME=CANARY-VALUE")
    ok(dssctl("topics", "create", "copies"))
    ok(dssctl("produce", "invoices", *record[:2], stdin=b"CANARY-PAYLOAD\n"))
    ok(dssctl("records", "skip", "billing", "--key", "CANARY-KEY", *why))
    for job in ("kept", "cancelled"):
        copy = ("replays", "create", job, "--from", "invoices", "--to", "copies", "--no-drive")
        ok(dssctl(*copy, *record, *why))
    ok(dssctl("jobs", "cancel", "cancelled", *why))
    check = ("lag-check", "--arg", "max-lag=0", "--arg", "attempts=1", "--arg")
    told = ("schedules", "create", "told", "--cron", "@yearly", "--task")
    ok(dssctl(*told, *check, f"url={let_in}", *why))
    ok(dssctl("schedules", "edit", "told", "--arg", f"url={let_in}?token=CANARY-QUERY", *why))
    assert dssctl("schedules", "run", "told", "--wait").returncode != 0
    assert dssctl("tasks", "run", *check, f"url={let_in}").returncode != 0
    assert dssctl("tasks", "run", *check, "url=ftp://ann:CANARY-URL@h/").returncode != 0
    assert dssctl("tasks", "run", *check, "url=http://ann:CANARY-URL@h/").returncode != 0
    path = tmp_path / "b.tar.gz"
    ok(dssctl("support", "gather", str(path)))
    said = ok(dssctl("tasks", "run", "snapshot")).decode().splitlines()[-1]
    files = {**contents(path), "snapshot": Path(said.partition(", ")[0]).read_text()}
    canaries = re.compile(f"[^ ]*(?:CANARY|{b'CANARY'.hex()})[^ ]*", re.IGNORECASE)
    assert {
        name: canaries.findall(text) for name, text in files.items() if canaries.search(text)
    } == {}
    numbers = ok(dssctl("ops", "ls", "-o", "name")).decode().split()
    listings: list[tuple[str, ...]] = [
        ("schedules", "ls"), ("schedules", "describe", "told"), ("schedules", "runs", "told"),
        ("events",), ("audit", "ls"), ("ops", "ls"),
        *(("ops", "describe", number) for number in numbers),
    ]  # fmt: skip
    lets_in = re.compile(rb"[^ ]*CANARY(?:0|-URL|-QUERY)[^ ]*")
    shown = {each: lets_in.findall(ok(dssctl(*each, "-o", "json"))) for each in listings}
    assert {each: found for each, found in shown.items() if found} == {}


def test_names_are_taken_out_where_that_is_wanted(stocked: Daemon, tmp_path: Path) -> None:
    path, log = tmp_path / "b.tar.gz", tmp_path / "dssd.log"
    log.write_text("billing@invoices/# moved\n")
    gather = ("support", "gather", str(path), "--log", str(log), "--hide-names")
    ok(stocked.dssctl(*gather))
    files = contents(path)
    for name in ("billing", "invoices", "vanished"):
        assert not any(name in text for text in files.values())
    assert "call.done" in files["events.jsonl"]
    group = json.loads(files["groups.jsonl"])
    assert files["logs/dssd.log"] == f"{group['name']}@{group['filter']} moved\n"


def test_a_file_that_is_there_stays_as_it_is(stocked: Daemon, tmp_path: Path) -> None:
    path = tmp_path / "b.tar.gz"
    path.write_bytes(b"mine")
    done = stocked.dssctl("support", "gather", str(path))
    assert done.returncode != 0
    assert b"error DSS1151: " in done.stderr
    assert path.read_bytes() == b"mine"


def test_without_a_daemon_the_bundle_says_what_is_missing(stocked: Daemon, tmp_path: Path) -> None:
    path = tmp_path / "b.tar.gz"
    nowhere = ("--endpoint", "unix:/nowhere/s", "support", "gather", str(path))
    assert b"MISSING" in ok(stocked.dssctl(*nowhere))
    manifest = json.loads(contents(path)["manifest.json"])
    missing = {each["name"]: each["why"] for each in manifest["missing"]}
    assert missing["status.json"].startswith("DSS5001: ")
    assert "daemon.reachable" in contents(path)["doctor.jsonl"]
