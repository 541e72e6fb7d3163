"""Commands about shards, against a daemon process: what they show, change and refuse."""

import csv
import io
import json
from itertools import count
from typing import Any

import pytest

from support.dssctl_call import Completed, Daemon, ok

PARTITIONS = 12
_numbers = count(1)


def one(done: Completed) -> dict[str, Any]:
    return dict(json.loads(ok(done))["item"])


def listed(daemon: Daemon, group: str) -> list[dict[str, Any]]:
    return list(json.loads(ok(daemon.dssctl("shards", "ls", group, "-o", "json")))["items"])


@pytest.fixture
def group(daemon: Daemon) -> str:
    """An ordered group in six shards, over a topic of its own with a few records."""
    name = f"cut{next(_numbers)}"
    ok(daemon.dssctl("topics", "create", name, "--partitions", str(PARTITIONS)))
    lines = "".join(f"{each}\n" for each in range(24)).encode()
    ok(daemon.dssctl("produce", name, stdin=lines))
    create = ("groups", "create", f"{name}@{name}/#", "--start", "earliest", "--ordered")
    made = one(daemon.dssctl(*create, "--max-deliver", "5", "--shards", "6", "-o", "json"))
    assert (made["allocation"], made["shards"]) == ("shard", 6)
    return name


def test_shards_are_listed_in_every_format_and_each_is_described(
    daemon: Daemon, group: str
) -> None:
    rows = listed(daemon, group)
    assert [each["shard"] for each in rows] == list(range(6))
    assert rows[3]["partitions"] == [f"{group}/0/6-7"]
    assert sum(each["lag"] for each in rows) == 24
    assert {(each["even"], each["aligned"]) for each in rows} == {(True, True)}
    table = ok(daemon.dssctl("shards", "ls", group)).decode().splitlines()
    assert table[0].split()[:3] == ["SHARD", "PARTITIONS", "HOLDER"]
    text = ok(daemon.dssctl("shards", "ls", group, "-o", "csv")).decode()
    assert [each["shard"] for each in csv.DictReader(io.StringIO(text))] == list("012345")
    shard = one(daemon.dssctl("shards", "describe", group, "3", "-o", "json"))
    assert shard["partitions"] == rows[3]["partitions"]
    assert [each["stream"] for each in shard["grants"]] == [f"{group}/0/6", f"{group}/0/7"]
    beyond = daemon.dssctl("shards", "describe", group, "6")
    assert beyond.returncode == 2
    assert b"0 to 5" in beyond.stderr


def test_another_count_is_planned_applied_and_undone(daemon: Daemon, group: str) -> None:
    cut = ("shards", "set-count", group)
    dry = ok(daemon.dssctl(*cut, "5", "--dry-run"))
    assert b"2 or 3 a shard" in dry
    assert b"Counts near it that are even and aligned: 4 or 6 or 3" in dry
    assert len(listed(daemon, group)) == 6
    done = one(daemon.dssctl(*cut, "5", "-y", "-o", "json"))
    assert done["state"] == "done"
    rows = daemon.dssctl("shards", "ls", group)
    assert b"even and aligned, and near 5: 4 or 6 or 3" in rows.stderr
    assert {each["even"] for each in listed(daemon, group)} == {False}
    ok(daemon.dssctl("ops", "undo", str(done["number"]), "-y"))
    assert len(listed(daemon, group)) == 6


def test_what_no_group_can_have_is_refused_with_a_command_that_works(
    daemon: Daemon, group: str
) -> None:
    before = one(daemon.dssctl("groups", "describe", group, "-o", "json"))["revision"]
    for wanted, near in (("0", "1"), ("13", "12")):
        done = daemon.dssctl("shards", "set-count", group, wanted, "-y")
        assert done.returncode == 2
        assert b"error DSS2161: " in done.stderr
        assert f"dssctl shards set-count '{group}@{group}/#' {near}".encode() in done.stderr
    plain = f"plain{group}"
    ok(daemon.dssctl("groups", "create", f"{plain}@{group}/#"))
    for asked in (("ls", plain), ("describe", plain, "0"), ("set-count", plain, "2", "-y")):
        done = daemon.dssctl("shards", *asked)
        assert done.returncode == 6
        assert b"error DSS2160: " in done.stderr
    stale = ("--if-revision", str(before + 7), "-y")
    done = daemon.dssctl("shards", "set-count", group, "4", *stale)
    assert done.returncode == 6
    assert b"error DSS2019: " in done.stderr
    gone = daemon.dssctl("shards", "ls", "nobody")
    assert gone.returncode == 5
    assert one(daemon.dssctl("groups", "describe", group, "-o", "json"))["revision"] == before


def test_a_growth_sets_the_counts_that_fit_and_says_how_each_is_undone(
    daemon: Daemon, group: str
) -> None:
    ok(daemon.dssctl("shards", "set-count", group, "5", "-y"))
    grow = ("topics", "grow", group, "--partitions", "24", "--with-shards")
    plan = one(daemon.dssctl(*grow, "--dry-run", "-o", "json"))
    [count] = plan["change"]["grow_topic"]["shard_counts"]
    assert (count["group"], count["shards"]) == (f"{group}@{group}/#", 6)
    done = daemon.dssctl(*grow, "-y", "-o", "json")
    grown = one(done)
    assert (grown["state"], grown["undoable"], len(listed(daemon, group))) == ("done", False, 6)
    [number] = grown["after"]["operations"]
    assert f"dssctl ops undo {number}".encode() in done.stderr
    ok(daemon.dssctl("ops", "undo", str(number), "-y"))
    assert len(listed(daemon, group)) == 5
