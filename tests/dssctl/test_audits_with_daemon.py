"""Audits from the command line: made, waited for, judged, and shown again."""

import json
from collections.abc import Callable, Iterator

import pytest

from support.dssctl_call import Completed, Daemon

RECORDS = 120
LINES = "".join(
    json.dumps({"key": f"k{n % 6}", "payload": str(n), "subject": "orders/eu"}) + "\n"
    for n in range(RECORDS)
).encode()

Run = Callable[..., Completed]


@pytest.fixture(scope="module")
def filled(daemon: Daemon, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Runs commands against a daemon with records, and a topic with each of them twice."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))

        def run(*arguments: str, code: int = 0, stdin: bytes = b"") -> Completed:
            done = daemon.dssctl(*arguments, stdin=stdin)
            assert done.returncode == code, done.stderr.decode()
            return done

        run("topics", "create", "orders", "--partitions", "2")
        run("topics", "create", "twice", "--partitions", "3")
        run("groups", "create", "readers@twice/#", "--start", "earliest")
        run("produce", "orders", "--input", "jsonl", stdin=LINES)
        for name in ("one", "two"):
            run("replays", "create", name, "--from", "orders", "--to", "twice", "-y")
            run("jobs", "wait", name, "--timeout", "60")
        yield run


def test_a_clean_topic_ends_with_0_and_its_report(filled: Run) -> None:
    made = filled("audits", "create", "clean", "--from", "orders", "--wait", "-y", "-o", "json")
    item = json.loads(made.stdout)["item"]
    assert (item["health"], item["complete"], item["records"]) == ("healthy", True, RECORDS)
    assert item["findings"] == []
    assert sum(each["records"] for each in item["streams"]) == RECORDS
    assert {each["key"] for each in item["keys"]} == {f"k{n}" for n in range(6)}
    shown = json.loads(filled("audits", "show", "clean", "-o", "json").stdout)["item"]
    assert shown == item
    printed = filled("audits", "show", "clean").stdout.decode()
    assert "120 records are all there" in printed
    assert "x ██" in printed or "x ##" in printed
    next_steps = filled("jobs", "describe", "clean").stdout.decode()
    assert "dssctl audits show clean" in next_steps


def test_a_finding_ends_with_1_where_it_was_asked_for(filled: Run) -> None:
    create = ("audits", "create", "doubled", "--from", "twice", "--wait", "-y")
    made = filled(*create, code=1)
    assert b"error DSS7030: The audit doubled found: 120 records are there a second" in made.stderr
    assert b"readers@twice/#" in made.stdout
    filled("audits", "show", "doubled")
    filled("audits", "show", "doubled", "--fail-on", "gaps,misrouted")
    filled("audits", "show", "doubled", "--fail-on", "duplicates", code=1)
    wrong = filled("audits", "show", "doubled", "--fail-on", "doubles", code=2)
    assert b"'doubles': checks are gaps, damage" in wrong.stderr
    assert b"no audit" in filled("audits", "show", "one", code=2).stderr


def test_a_part_of_a_topic_is_looked_at_and_shown_before_it_is_done(filled: Run) -> None:
    part = ("--only", "orders/us", "--no-drive")
    filled("audits", "create", "part", "--from", "orders", *part, "-y")
    item = json.loads(filled("audits", "show", "part", "-o", "json").stdout)["item"]
    assert (item["complete"], item["records"], item["filter"]) == (False, 0, "orders/us")
    filled("jobs", "drive", "part")
    filled("jobs", "wait", "part", "--timeout", "60")
    item = json.loads(filled("audits", "show", "part", "-o", "json").stdout)["item"]
    assert (item["complete"], item["records"], item["findings"]) == (True, 0, [])


def test_a_dry_run_makes_nothing(filled: Run) -> None:
    planned = filled("audits", "create", "later", "--from", "orders", "--dry-run", "--wait")
    assert b"make the audit later: 120 records in 1 chunk" in planned.stdout
    filled("audits", "show", "later", code=5)
