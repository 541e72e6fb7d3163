"""Commands that change who reads which stream, against a daemon process and members."""

import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import IO, Any

import pytest

from support.dssctl_call import Completed, Daemon, item, ok
from support.started_program import ProgramProcess

STREAMS = 4
LOST_TOLD_S_MAX = 60.0
"""Far above what it takes."""
_numbers = count(1)


def refused(done: Completed, exit_code: int, code: str) -> None:
    assert done.returncode == exit_code, done.stderr.decode()
    assert f"error {code}: ".encode() in done.stderr


def described(daemon: Daemon, group: str) -> dict[str, Any]:
    return item(daemon.dssctl("groups", "describe", group, "-o", "json"))


def held(daemon: Daemon, group: str) -> dict[str, str]:
    """Who holds which stream."""
    return {each["stream"]: each["client_id"] for each in described(daemon, group)["grants"]}


@contextmanager
def member(daemon: Daemon, group: str) -> Iterator[ProgramProcess]:
    """A member that consumes, once it holds a stream."""
    before = {each["client_id"] for each in described(daemon, group)["members"]}
    consume = ("consume", f"{group}/#", "--group", group, "-o", "jsonl")
    with ProgramProcess(
        ["-m", "dssctl", "--endpoint", daemon.endpoint, *consume],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            while not set(held(daemon, group).values()) - before - {None}:
                assert process.poll() is None
            yield process
        finally:
            process.kill()


@pytest.fixture
def group(daemon: Daemon) -> str:
    """A group over a topic of its own."""
    name = f"group{next(_numbers)}"
    ok(daemon.dssctl("topics", "create", name, "--partitions", str(STREAMS)))
    ok(daemon.dssctl("groups", "create", f"{name}@{name}/#", "--start", "earliest"))
    return name


def said(stream: IO[bytes] | None) -> str:
    assert stream is not None
    return stream.read().decode()


@pytest.mark.slow("two members come")
def test_one_stream_is_given_to_a_member_and_taken_from_it(daemon: Daemon, group: str) -> None:
    stream = f"{group}/0/0"
    with member(daemon, group), member(daemon, group):
        first = held(daemon, group)[stream]
        (other,) = {each["client_id"] for each in described(daemon, group)["members"]} - {first}
        transfer = ("grants", "transfer", group, stream, "--to", other)
        plan = item(daemon.dssctl(*transfer, "--dry-run", "-o", "json"))
        assert [(each["stream"], each["to_client_id"]) for each in plan["moves"]] == [
            (stream, other)
        ]
        assert b"FROM" in ok(daemon.dssctl(*transfer, "--dry-run"))
        assert item(daemon.dssctl(*transfer, "-y", "-o", "json"))["state"] == "done"
        assert held(daemon, group)[stream] == other
        (pinned,) = [
            each["pinned_to"]
            for each in described(daemon, group)["grants"]
            if each["stream"] == stream
        ]
        assert pinned == other
        revoke = ("grants", "revoke", group, stream, "-y", "-o", "json")
        assert item(daemon.dssctl(*revoke))["state"] == "done"
        assert held(daemon, group)[stream] == first
        rebalance = ("groups", "rebalance", group, "--max-moves", "1", "-y", "-o", "json")
        assert item(daemon.dssctl(*rebalance))["kind"] == "groups.rebalance"
    nobody = ("grants", "transfer", group, stream, "--to", "nobody", "-y")
    refused(daemon.dssctl(*nobody), 5, "DSS2026")


@pytest.mark.slow("a member comes, is ended and comes back")
def test_a_member_is_evicted_and_kept_out_until_that_is_undone(daemon: Daemon, group: str) -> None:
    with member(daemon, group) as process:
        (client,) = [each["client_id"] for each in described(daemon, group)["members"]]
        evict = ("borrowers", "evict", group, client, "--grace", "1s", "--ban", "1h")
        evicted = item(daemon.dssctl(*evict, "--reason", "ticket", "-y", "-o", "json"))
        assert evicted["state"] == "done"
        assert process.wait() != 0
        assert "DSS6007" in said(process.stderr)
    assert described(daemon, group)["members"] == []
    undone = daemon.dssctl("ops", "undo", str(evicted["number"]), "-y", "-o", "json")
    assert item(undone)["undoes"] == evicted["number"]
    refused(daemon.dssctl("borrowers", "evict", group, client, "-y"), 5, "DSS2026")


@pytest.mark.slow("two members come")
def test_who_took_over_from_a_killed_member_is_an_event(daemon: Daemon, group: str) -> None:
    with member(daemon, group) as first:
        (killed,) = {each["client_id"] for each in described(daemon, group)["members"]}
        with member(daemon, group):
            deadline = time.monotonic() + LOST_TOLD_S_MAX
            # Before they share evenly, streams are on their way from one to the other.
            while sorted((shares := Counter(held(daemon, group).values())).values()) != [2, 2]:
                assert time.monotonic() < deadline
            (other,) = shares.keys() - {killed}
            first.kill()
            events = ("events", "--subject", f"{group}@", "-o", "jsonl")
            while b"member.lost" not in (told := ok(daemon.dssctl(*events))):
                assert time.monotonic() < deadline
            assert f"{killed} went without leaving; of 2 streams, {other} took 2" in told.decode()


def test_a_sessions_page_names_its_groups_and_what_it_holds(daemon: Daemon, group: str) -> None:
    with member(daemon, group):
        while len(holders := set(held(daemon, group).values())) != 1:
            pass
        (client_id,) = holders
        page = item(daemon.dssctl("sessions", "describe", client_id, "-o", "json"))
        assert page["health"] == "healthy"
        assert f"It reads {STREAMS} streams for 1 subscription; 0 records to go." in page["verdict"]
        assert [each["group"] for each in page["memberships"]] == [f"{group}@{group}/#"]
        assert len(page["grants"]) == STREAMS
        assert page["next"] == [f"dssctl groups describe '{group}@{group}/#'"]
        shown = daemon.dssctl("sessions", "describe", client_id)
        assert b"MEMBERSHIPS" in ok(shown)
