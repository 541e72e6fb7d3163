"""``dssctl events`` against a daemon whose events are known."""

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import pytest

from dssctl.output import Instant
from dssd.events.kinds import CONSUMER_SLOW, RETENTION_LOST, STREAM_READABLE
from dssd.events.model import Event
from support.daemon_process import STOP_S_MAX, short_directory
from support.dssctl_call import Completed, call_dssctl
from support.started_program import ProgramProcess
from support.told_events import tell_in

TOLD = (
    Event(
        RETENTION_LOST,
        "billing@orders/#",
        "Retention takes 5 records of topic orders that it has not acknowledged.",
        {"group": "billing@orders/#", "topic": "orders", "records": "5"},
    ),
    Event(CONSUMER_SLOW, "process 77", "It stopped reading\x1b[2J with 9 bytes unread."),
    Event(CONSUMER_SLOW, "process 77", "It stopped reading\x1b[2J with 9 bytes unread."),
    Event(STREAM_READABLE, "orders/0/3", "It can be read again."),
)


class Seeded:
    """A daemon with these events, told two hours ago."""

    def __init__(self, home: Path) -> None:
        self.endpoint = f"unix:{home / 's'}"
        self.at_ms = time.time_ns() // 1_000_000 - 7_200_000
        asyncio.run(tell_in(home / "d", self.at_ms, TOLD))
        serve = ("-m", "dssd", "serve", "--data-dir", str(home / "d"), "--listen", self.endpoint)
        self.process = ProgramProcess(serve, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        assert self.process.stderr is not None
        while b" listening on " not in self.process.stderr.readline():
            assert self.process.poll() is None

    def command(self, *arguments: str) -> list[str]:
        return ["-m", "dssctl", *self._line(arguments)]

    def run(self, *arguments: str) -> Completed:
        return call_dssctl(*self._line(arguments))

    def ok(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout.decode()

    def _line(self, arguments: Sequence[str]) -> Sequence[str]:
        return "--endpoint", self.endpoint, "events", *arguments


@pytest.fixture(scope="module")
def seeded() -> Iterator[Seeded]:
    with short_directory() as home:
        daemon = Seeded(home)
        yield daemon
        daemon.process.terminate()
        daemon.process.communicate(timeout=STOP_S_MAX)


TABLE = """\
NUMBER    AGE  SEVERITY  CODE             SUBJECT           TIMES  WHAT HAPPENED
     1  2h00m  error     retention.lost   billing@orders/#      -  \
Retention takes 5 records of topic orders that it has not acknowledged.
     2  2h00m  warning   consumer.slow    process 77           x2  \
It stopped reading\\x1b[2J with 9 bytes unread.
     3  2h00m  info      stream.readable  orders/0/3            -  It can be read again.
"""


def test_a_table_shows_what_happened_the_oldest_first(seeded: Seeded) -> None:
    table, started = seeded.ok().rsplit("\n", 2)[:2]
    assert f"{table}\n" == TABLE
    assert " info      daemon.started   daemon " in started
    wide = seeded.ok("-o", "wide", "--no-headers").splitlines()[0]
    assert "group=billing@orders/#,records=5,topic=orders" in wide


def test_programs_read_every_field(seeded: Seeded) -> None:
    at = Instant.of_ms(seeded.at_ms).rfc3339()
    document = json.loads(seeded.ok("-o", "json"))
    assert (document["apiVersion"], document["kind"]) == ("dssctl/v1", "EventList")
    assert document["items"][0] == {
        "number": 1,
        "at": at,
        "severity": "error",
        "code": "retention.lost",
        "subject": "billing@orders/#",
        "sentence": "Retention takes 5 records of topic orders that it has not acknowledged.",
        "fields": {"group": "billing@orders/#", "topic": "orders", "records": "5"},
        "times": 1,
        "last_at": at,
    }
    assert [item["times"] for item in document["items"]] == [1, 2, 1, 1]
    lines = seeded.ok("-o", "jsonl").splitlines()
    assert [json.loads(line) for line in lines] == document["items"]


def test_the_other_formats(seeded: Seeded) -> None:
    assert seeded.ok("-o", "name") == "1\n2\n3\n4\n"
    header, first, *_ = seeded.ok("-o", "csv").splitlines()
    assert header.startswith("number,at,severity,code,subject,times,last_at")
    assert first.startswith("1,")
    assert "sentence: It can be read again." in seeded.ok("-o", "yaml").replace('"', "")


@pytest.mark.parametrize(
    ("options", "numbers"),
    [
        (("--severity", "warning"), "1 2"),
        (("--severity", "error"), "1"),
        (("--subject", "orders/"), "3"),
        (("--since", "-3h"), "1 2 3 4"),
        (("--since", "-1h"), "4"),
        (("-n", "2"), "3 4"),
        (("-n", "1", "--severity", "warning"), "2"),
        (("-n", "0"), ""),
    ],
)
def test_what_is_shown_is_what_was_asked_for(
    options: tuple[str, ...], numbers: str, seeded: Seeded
) -> None:
    assert seeded.ok(*options, "-o", "name").split() == numbers.split()


def test_what_breaks_a_rule_is_a_usage_error(seeded: Seeded) -> None:
    for options in (("--severity", "bad"), ("--since", "soon"), ("-n", "-1")):
        done = seeded.run(*options)
        assert (done.returncode, done.stdout) == (2, b"")
        assert b"error DSS" in done.stderr


def test_only_a_terminal_sees_colours(seeded: Seeded) -> None:
    assert "\x1b[" not in seeded.ok()
    coloured = seeded.ok("--color", "always")
    assert "\x1b[1;31merror" in coloured
    assert "\x1b[33mwarning" in coloured


def first_lines(stream: IO[bytes], count: int) -> list[bytes]:
    return [stream.readline() for _ in range(count)]


def test_following_prints_the_last_ones_and_ends_by_ctrl_c_with_130(seeded: Seeded) -> None:
    following = ProgramProcess(
        seeded.command("-f", "-n", "3", "-o", "json"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert following.stdout is not None
    begun = b""
    while b"daemon.started" not in begun:
        begun += os.read(following.stdout.fileno(), 1 << 16)
    following.send_signal(signal.SIGINT)
    rest, said = following.communicate(timeout=STOP_S_MAX)
    assert (following.returncode, said) == (130, b"")
    assert [item["number"] for item in json.loads(begun + rest)["items"]] == [2, 3, 4]


def test_following_goes_on_over_a_restart_and_notes_it() -> None:
    with short_directory() as home:
        daemon = Seeded(home)
        following = ProgramProcess(
            daemon.command("--follow", "-o", "name"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert following.stdout is not None
        assert following.stderr is not None
        assert first_lines(following.stdout, 4) == [b"1\n", b"2\n", b"3\n", b"4\n"]
        daemon.process.terminate()
        daemon.process.communicate(timeout=STOP_S_MAX)
        assert b"lost its connection" in following.stderr.readline()
        again = Seeded(home)
        assert b"again" in following.stderr.readline()
        assert first_lines(following.stdout, 1) == [b"5\n"], "it goes on behind the last one"
        following.send_signal(signal.SIGINT)
        following.communicate(timeout=STOP_S_MAX)
        assert following.returncode == 130
        again.process.terminate()
        again.process.communicate(timeout=STOP_S_MAX)
