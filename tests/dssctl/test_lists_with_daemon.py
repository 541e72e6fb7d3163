"""Every list against a daemon: the same filters, orders, columns and limits."""

import json
import signal
import subprocess
import sys
from typing import Any

import pexpect
import pytest

from support.daemon_process import STOP_S_MAX
from support.dssctl_call import Daemon, environment
from support.started_program import ProgramProcess


@pytest.fixture(scope="module", autouse=True)
def things(daemon: Daemon) -> None:
    for name, partitions in (("alpha", "1"), ("beta", "4"), ("gamma", "2")):
        daemon.dssctl("topics", "create", name, "--partitions", partitions)
        daemon.dssctl("groups", "create", f"of-{name}@{name}/#", "--start", "earliest")
    daemon.dssctl("produce", "beta", stdin=b"1\n2\n3\n")


def listed(daemon: Daemon, *arguments: str) -> list[dict[str, Any]]:
    done = daemon.dssctl(*arguments, "-o", "json")
    assert done.returncode == 0, done.stderr.decode()
    items: list[dict[str, Any]] = json.loads(done.stdout)["items"]
    return items


def names(daemon: Daemon, *arguments: str) -> list[str]:
    done = daemon.dssctl(*arguments, "-o", "name")
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().split()


def test_topics_are_filtered_sorted_and_cut(daemon: Daemon) -> None:
    assert names(daemon, "topics", "ls", "--filter", "partitions>1") == ["beta", "gamma"]
    assert names(daemon, "topics", "ls", "--sort", "partitions") == ["beta", "gamma", "alpha"]
    cut = daemon.dssctl("topics", "ls", "--sort", "-partitions", "--limit", "1", "-o", "name")
    assert cut.stdout == b"alpha\n"
    assert b"1 are shown, and there are 3" in cut.stderr


def test_groups_are_chosen_by_alternatives_in_the_daemon(daemon: Daemon) -> None:
    wanted = "lag>2 or name=*alpha"
    assert names(daemon, "groups", "ls", "--filter", wanted, "--sort", "lag:desc") == [
        "of-beta@beta/#",
        "of-alpha@alpha/#",
    ]


def test_grants_show_the_named_columns_in_tables_csv_and_documents(daemon: Daemon) -> None:
    chosen = ("grants", "ls", "--filter", "lag>0,group=of-beta", "--columns", "stream,lag")
    table = daemon.dssctl(*chosen).stdout.decode().splitlines()
    assert table[0].split() == ["STREAM", "LAG"]
    assert daemon.dssctl(*chosen, "-o", "csv").stdout.startswith(b"stream,lag\n")
    assert all(set(item) == {"stream", "lag"} for item in listed(daemon, *chosen))


def test_a_template_makes_a_line_an_item(daemon: Daemon) -> None:
    done = daemon.dssctl("topics", "ls", "-o", "template={name}:{partitions:>3}")
    assert done.stdout == b"alpha:  1\nbeta:  4\ngamma:  2\n"
    wrong = daemon.dssctl("topics", "ls", "-o", "template={nam}")
    assert wrong.returncode == 2
    assert b"there is no field 'nam'" in wrong.stderr


def test_codes_are_listed_by_the_same_rules(daemon: Daemon) -> None:
    assert names(daemon, "errors", "ls", "--filter", "code=DSS2001") == ["DSS2001"]


def test_moments_are_ages_times_or_seconds(daemon: Daemon) -> None:
    ages = daemon.dssctl("topics", "ls", "--columns", "name,age").stdout.decode().splitlines()
    assert ages[0].split() == ["NAME", "AGE"]
    times = daemon.dssctl("--time", "iso", "topics", "ls").stdout.decode().splitlines()
    assert "CREATED-AT" in times[0]
    assert any(cell.startswith("20") and cell.endswith("Z") for cell in times[1].split())


def test_members_are_listed_and_described_with_their_streams(daemon: Daemon) -> None:
    command = ("consume", "beta/#", "--group", "of-beta", "--client-id", "anna")
    member = ProgramProcess(
        ["-m", "dssctl", "--endpoint", daemon.endpoint, *command],
        stdout=subprocess.PIPE,
        env=environment(),
    )
    try:
        assert member.stdout is not None
        member.stdout.readline()
        [anna] = listed(daemon, "borrowers", "ls")
        assert (anna["group"], anna["client_id"], anna["streams"]) == ("of-beta@beta/#", "anna", 4)
        assert listed(daemon, "borrowers", "ls", "-g", "of-alpha") == []
        described = daemon.dssctl("borrowers", "describe", "of-beta", "anna", "-o", "json")
        assert len(json.loads(described.stdout)["item"]["grants"]) == 4
        assert daemon.dssctl("borrowers", "describe", "of-beta", "bert").returncode == 5
    finally:
        member.send_signal(signal.SIGINT)
        member.communicate(timeout=STOP_S_MAX)


def test_a_member_that_is_terminated_leaves(daemon: Daemon) -> None:
    command = ("consume", "beta/#", "--group", "left", "--start", "earliest", "--client-id", "carl")
    member = ProgramProcess(
        ["-m", "dssctl", "--endpoint", daemon.endpoint, *command],
        stdout=subprocess.PIPE,
        env=environment(),
    )
    assert member.stdout is not None
    assert [member.stdout.readline() for _ in range(2)][1]
    member.send_signal(signal.SIGTERM)
    member.communicate(timeout=STOP_S_MAX)
    assert member.returncode == -signal.SIGTERM
    [carl] = [each for each in listed(daemon, "sessions", "ls") if each["client_id"] == "carl"]
    assert carl["subscriptions"] == 0, "whoever is lost keeps its subscription for a while"


def test_a_watched_list_prints_what_came_and_went(daemon: Daemon) -> None:
    command = ("topics", "ls", "--watch=0.2s", "--filter", "name=w*", "-o", "jsonl")
    process = ProgramProcess(
        ["-m", "dssctl", "--endpoint", daemon.endpoint, *command],
        stdout=subprocess.PIPE,
        env=environment(),
    )
    assert process.stdout is not None
    try:
        daemon.dssctl("topics", "create", "watched")
        came = json.loads(process.stdout.readline())
        assert (came["event"], came["name"]) == ("ADDED", "watched")
        daemon.dssctl("topics", "rm", "watched", "-y")
        assert json.loads(process.stdout.readline())["event"] == "GONE"
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=STOP_S_MAX)
    assert process.returncode == 130


def test_a_terminal_is_drawn_anew(daemon: Daemon) -> None:
    child = pexpect.spawn(
        sys.executable,
        ["-m", "dssctl", "--endpoint", daemon.endpoint, "topics", "ls", "-w", "-X", "watch=0.2"],
        env=environment(TERM="xterm"),
        encoding="utf-8",
        timeout=STOP_S_MAX,
        dimensions=(24, 100),
    )
    child.expect_exact("\x1b[2J\x1b[H")
    child.expect_exact("alpha")
    child.expect_exact("\x1b[H")
    child.sendintr()
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130


def test_every_field_that_the_tool_explains_is_one_that_the_daemon_filters_by() -> None:
    from dss_core.conditions import FieldType
    from dssctl.choosing import COMPARED_AS
    from dssctl.nouns.groups import GROUP_KIND
    from dssctl.output.chosen_columns import names_of_columns
    from dssd.questions.selection import TYPES

    listed_fields = [field for field in GROUP_KIND.fields if not field.absent]
    compared = {field.name for field in listed_fields if field.type in COMPARED_AS}
    names = {name for name, field in names_of_columns(GROUP_KIND).items() if field in compared}
    written = {name for name in names if name.replace("_", "").isalnum()}
    assert written <= TYPES.keys()
    assert TYPES["oldest"] is FieldType.SPAN


def test_a_pattern_of_names_chooses_among_what_is_listed(daemon: Daemon) -> None:
    assert names(daemon, "topics", "ls", "*a") == ["alpha", "beta", "gamma"]
    assert names(daemon, "topics", "ls", "?e*") == ["beta"]
    assert names(daemon, "topics", "ls", "alpha") == ["alpha"]
    several = ("--filter", "partitions>1 or name=beta")
    assert names(daemon, "topics", "ls", "b*", *several) == ["beta"]
    nothing = daemon.dssctl("topics", "ls", "delta", "-o", "name")
    assert (nothing.returncode, nothing.stdout) == (0, b"")
    assert b"nothing is named delta" in nothing.stderr
    refused = daemon.dssctl("topics", "ls", "a,b")
    assert refused.returncode == 2
