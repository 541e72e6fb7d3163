"""What ``dssctl groups`` answers to questions, against a daemon process."""

import json

import pytest

from support.dssctl_call import Completed, Daemon, items, ok


def refused(done: Completed, exit_code: int, code: str) -> bytes:
    assert done.returncode == exit_code, done.stderr.decode()
    assert f"error {code}: ".encode() in done.stderr
    return done.stderr


@pytest.fixture(scope="module")
def asked(daemon: Daemon) -> Daemon:
    """The group ``billing`` over a topic of one stream with three records, of which it has none."""
    ok(daemon.dssctl("topics", "create", "orders", "--partitions", "1"))
    ok(daemon.dssctl("groups", "create", "billing@orders/#", "--start", "earliest"))
    lines = b"".join(
        json.dumps({"subject": "orders/eu", "key": key, "payload": "x"}).encode() + b"\n"
        for key in ("ann", "bob", "ann")
    )
    ok(daemon.dssctl("produce", "orders", "--input", "jsonl", stdin=lines))
    return daemon


def why(daemon: Daemon, *arguments: str) -> Completed:
    return daemon.dssctl("groups", "why", "billing", *arguments)


def test_a_person_is_told_why_a_record_does_not_come_and_what_to_do(asked: Daemon) -> None:
    done = why(asked, "--stream", "orders/0/0", "--offset", "1")
    assert b"no-members" in ok(done)
    assert b"Nobody is a member of the group." in done.stdout
    assert done.stderr == b"note: next: dssctl consume 'orders/#' --group billing\n"


def test_a_program_is_told_the_facts(asked: Daemon) -> None:
    (found,) = items(why(asked, "--stream", "orders/0/0", "--offset", "1", "-o", "json"))
    assert items(why(asked, "orders/0/0", "1", "-o", "json")) == [found]
    twice = why(asked, "orders/0/0", "1", "--offset", "1")
    assert (twice.returncode, b"named twice" in twice.stderr) == (2, True)
    assert (found["code"], found["offset"], found["ahead"]) == ("no-members", 1, 1)
    assert (found["subject"], found["key"], found["end"]) == ("orders/eu", "bob", 3)


def test_the_records_of_a_key_are_told(asked: Daemon) -> None:
    found = items(why(asked, "--key", "ann", "-o", "json"))
    assert [each["offset"] for each in found] == [0, 2]
    on = items(why(asked, "--key", "ann", "--stream", "orders/0/0", "--offset", "1", "-o", "json"))
    assert [each["offset"] for each in on] == [2]


def test_what_is_not_there_is_refused_with_the_command_that_would_work(asked: Daemon) -> None:
    beyond = refused(why(asked, "--stream", "orders/0/0", "--offset", "3"), 5, "DSS2041")
    assert b"--stream orders/0/0 --offset 2" in beyond
    refused(why(asked, "--key", "zoe"), 5, "DSS2042")
    refused(why(asked, "--key", ""), 5, "DSS2042")
    refused(why(asked, "--key", "k" * 70_000), 2, "DSS1010")
    refused(why(asked, "--stream", "orders/0/9", "--offset", "0"), 5, "DSS2011")
    unsaid = why(asked, "--stream", "orders/0/0")
    assert unsaid.returncode == 2
    assert b"STREAM and OFFSET, or --key" in unsaid.stderr


def test_a_person_is_told_what_does_not_move_and_what_would_help(asked: Daemon) -> None:
    done = asked.dssctl("groups", "stuck")
    assert b"billing@orders/#" in ok(done)
    assert b"Nobody is a member of the group." in done.stdout
    assert done.stderr == b"note: next: dssctl consume 'orders/#' --group billing\n"
    (found,) = items(asked.dssctl("groups", "stuck", "billing", "--for", "10m", "-o", "json"))
    assert (found["code"], found["lag"], found["stream"]) == ("no-members", 3, None)
    refused(asked.dssctl("groups", "stuck", "none"), 5, "DSS2004")
    refused(asked.dssctl("groups", "stuck", "--for", "soon"), 2, "DSS1016")


def test_a_group_whose_sums_add_up_is_shown_stream_by_stream(asked: Daemon) -> None:
    done = asked.dssctl("groups", "verify", "billing")
    assert b"ADDS-UP" in ok(done)
    (found,) = items(asked.dssctl("groups", "verify", "billing", "--scan", "-o", "json"))
    assert (found["adds_up"], found["appended"], found["waiting"]) == (True, 3, 3)
    assert (found["found_matching"], found["problem"]) == (0, None)
    unread = asked.dssctl("groups", "verify", "billing", "--stream", "orders/0/7")
    refused(unread, 5, "DSS2025")


def test_groups_are_listed_as_they_are_filtered_and_sorted(asked: Daemon) -> None:
    def names(*arguments: str) -> list[str]:
        return [
            each["name"] for each in items(asked.dssctl("groups", "ls", *arguments, "-o", "json"))
        ]

    ok(asked.dssctl("groups", "create", "late@orders/#"))
    assert names() == ["billing", "late"]
    assert names("--sort", "-lag") == ["late", "billing"]
    assert names("--filter", "lag>=3,state=idle") == ["billing"]
    wide = ok(asked.dssctl("groups", "ls", "-o", "wide", "--filter", "name=late"))
    assert b"IN/S" in wide
    assert b"DRAINED-IN" in wide
    unreadable = refused(asked.dssctl("groups", "ls", "--filter", "lag>many"), 2, "DSS1141")
    assert b"lag>1000,state=stalled" in unreadable
    refused(asked.dssctl("groups", "ls", "--sort", "colour"), 2, "DSS1142")
    described = asked.dssctl("groups", "describe", "billing", "-o", "wide")
    assert b"ACKS/S" in ok(described)
