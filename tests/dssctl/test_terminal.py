"""With a real terminal: questions, colours, Ctrl-C."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Protocol

import pexpect
import pytest

from support.terminal import TIMEOUT_S, AtTerminal


class Daemon(Protocol):
    endpoint: str

    def dssctl(
        self, *arguments: str, stdin: bytes = b""
    ) -> "subprocess.CompletedProcess[bytes]": ...


def exit_code(child: AtTerminal) -> int | None:
    child.expect(pexpect.EOF)
    child.close()
    return child.exitstatus


def printed(child: AtTerminal) -> str:
    """What came since the last expectation."""
    return child.before or ""


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("yes", 0), ("n", 8), ("", 8), ("q", 8)])
def test_removing_asks_and_takes_yes_only_for_an_answer(
    answer: str, code: int, daemon: Daemon
) -> None:
    daemon.dssctl("topics", "create", "asked", "--if-not-exists")
    child = AtTerminal("--endpoint", daemon.endpoint, "topics", "rm", "asked")
    child.expect_exact("UNDO")
    child.expect("remove asked: [^?]*: go ahead\\? \\[y/N\\] ")
    child.sendline(answer)
    assert exit_code(child) == code
    assert daemon.dssctl("topics", "describe", "asked").returncode == (5 if code == 0 else 0)


def test_a_closed_input_is_no_consent(daemon: Daemon) -> None:
    daemon.dssctl("topics", "create", "closed", "--if-not-exists")
    child = AtTerminal("--endpoint", daemon.endpoint, "topics", "rm", "closed")
    child.expect_exact("[y/N]")
    child.sendeof()
    child.expect_exact("DSS1103")
    assert exit_code(child) == 8


def test_ctrl_c_at_a_question_ends_quietly_with_130(daemon: Daemon) -> None:
    daemon.dssctl("topics", "create", "left", "--if-not-exists")
    child = AtTerminal("--endpoint", daemon.endpoint, "topics", "rm", "left")
    child.expect_exact("[y/N]")
    child.sendintr()
    assert exit_code(child) == 130
    assert "Traceback" not in printed(child)
    assert daemon.dssctl("topics", "describe", "left").returncode == 0


@pytest.mark.parametrize(("typed", "code"), [("guarded", 0), ("yes", 8)])
def test_a_protected_context_wants_the_name_typed(
    typed: str, code: int, daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon.dssctl("topics", "create", "guarded", "--if-not-exists")
    config = tmp_path / "config.toml"
    config.write_text(f'[contexts.prod]\nendpoint = "{daemon.endpoint}"\nprotected = true\n')
    monkeypatch.setenv("DSSCTL_CONFIG", str(config))
    child = AtTerminal("-c", "prod", "topics", "rm", "guarded", "--reason", "T-1", "-y")
    child.expect_exact("this cannot be undone")
    child.expect_exact("Type guarded to go ahead: ")
    child.sendline(typed)
    assert exit_code(child) == code
    assert daemon.dssctl("topics", "describe", "guarded").returncode == (5 if code == 0 else 0)


@pytest.mark.parametrize("option", [("--no-input",), ("-o", "json")])
def test_a_terminal_is_not_asked_either_when_told_so(
    option: tuple[str, ...], daemon: Daemon
) -> None:
    daemon.dssctl("topics", "create", "unasked", "--if-not-exists")
    child = AtTerminal("--endpoint", daemon.endpoint, "topics", "rm", "unasked", *option)
    child.expect_exact("DSS1102")
    assert exit_code(child) == 2


def test_colours_come_on_a_terminal_and_go_when_unwanted() -> None:
    child = AtTerminal("errors", "explain", "DSS2001")
    child.expect_exact("\x1b[1mCODE")
    assert exit_code(child) == 0
    child = AtTerminal("--color", "never", "errors", "explain", "DSS2001")
    child.expect(pexpect.EOF)
    assert "\x1b" not in printed(child)


def test_ctrl_c_ends_a_plain_read_with_130_and_without_a_traceback(daemon: Daemon) -> None:
    daemon.dssctl("topics", "create", "endless", "--if-not-exists")
    daemon.dssctl("produce", "endless", stdin=b"only\n")
    child = AtTerminal("--endpoint", daemon.endpoint, "consume", "endless/#")
    child.expect_exact("only")
    child.sendintr()
    assert exit_code(child) == 130
    assert "Traceback" not in printed(child)
    assert "Error" not in printed(child)


def test_what_a_member_printed_before_ctrl_c_is_acknowledged(daemon: Daemon) -> None:
    daemon.dssctl("topics", "create", "pressed", "--if-not-exists")
    daemon.dssctl("groups", "create", "pressers@pressed/#", "--start", "earliest")
    daemon.dssctl("produce", "pressed", stdin=b"first\nsecond\nthird\n")
    child = AtTerminal(
        *("--endpoint", daemon.endpoint, "consume", "pressed/#", "--group", "pressers")
    )
    child.expect_exact("third")
    child.sendintr()
    assert exit_code(child) == 130
    assert "Traceback" not in printed(child)
    described = daemon.dssctl("groups", "describe", "pressers", "-o", "json")
    assert json.loads(described.stdout)["item"]["lag"] == 0


def test_lines_typed_at_a_terminal_are_published_as_they_come(daemon: Daemon) -> None:
    daemon.dssctl("topics", "create", "typed", "--if-not-exists")
    child = AtTerminal("--endpoint", daemon.endpoint, "produce", "typed")
    child.sendline("hello")
    read = daemon.dssctl("consume", "typed/#", "-n", "1", "-o", "jsonl")
    assert json.loads(read.stdout)["payload"] == "hello"
    child.sendintr()
    child.expect_exact("1 record was published before that.")
    assert exit_code(child) == 130


def test_a_file_is_published_under_a_progress_bar(daemon: Daemon, tmp_path: Path) -> None:
    daemon.dssctl("topics", "create", "barred", "--if-not-exists")
    path = tmp_path / "input"
    path.write_bytes(b"line\n" * 1_000)
    child = AtTerminal("--endpoint", daemon.endpoint, "produce", "barred", str(path))
    child.expect_exact("barred")
    child.expect_exact("5.0/5.0 kB")
    child.expect("RECORDS.*1000")
    assert exit_code(child) == 0


def consumed(daemon: Daemon, name: str) -> None:
    """A group of a topic of one stream, that has acknowledged three records."""
    daemon.dssctl("topics", "create", name, "--if-not-exists")
    daemon.dssctl("groups", "create", f"{name}@{name}/#", "--start", "earliest", "--if-not-exists")
    daemon.dssctl("produce", name, stdin=b"1\n2\n3\n")
    daemon.dssctl("consume", f"{name}/#", "--group", name, "-n", "3")


def floor(daemon: Daemon, group: str) -> int:
    listed = json.loads(daemon.dssctl("grants", "ls", "-g", group, "-o", "json").stdout)
    return int(listed["items"][0]["floor"])


@pytest.mark.parametrize(("answer", "code", "after"), [("n", 8, 3), ("y", 0, 0)])
def test_a_plan_is_shown_before_it_is_asked_for_consent(
    answer: str, code: int, after: int, daemon: Daemon
) -> None:
    consumed(daemon, f"planned{answer}")
    rewind = ("offsets", "rewind", f"planned{answer}", "--to", "earliest")
    child = AtTerminal("--endpoint", daemon.endpoint, "--color", "never", *rewind)
    child.expect(r"STREAM +FLOOR +TARGET +AGAIN +PASSED +HOLDER")
    child.expect_exact("3 records come again")
    child.expect_exact("go ahead? [y/N] ")
    child.sendline(answer)
    if code == 0:
        child.expect("STATE +done")
        child.expect("undo with: dssctl ops undo [0-9]+")
    assert exit_code(child) == code
    assert floor(daemon, f"planned{answer}") == after


@pytest.mark.slow("the lease of a frozen member ends")
def test_ctrl_c_ends_the_waiting_and_not_the_operation(daemon: Daemon) -> None:
    consumed(daemon, "frozen")
    daemon.dssctl("produce", "frozen", stdin=b"4\n")
    holder = AtTerminal(
        *("--endpoint", daemon.endpoint, "consume", "frozen/#", "--group", "frozen")
    )
    holder.expect("frozen/0/0 +3")
    holder.kill(signal.SIGSTOP)
    try:
        rewind = ("offsets", "rewind", "frozen", "--to", "earliest", "-y")
        child = AtTerminal("--endpoint", daemon.endpoint, "--color", "never", *rewind)
        child.expect("operation ([0-9]+) .* 0/1 streams")
        assert isinstance(child.match, re.Match)
        number = child.match[1]
        child.sendintr()
        child.expect_exact(f"operation {number} goes on: dssctl ops wait {number}")
        assert exit_code(child) == 130
    finally:
        holder.kill(signal.SIGKILL)
        holder.close()
    waited = daemon.dssctl("ops", "wait", number, "-o", "json")
    assert json.loads(waited.stdout)["item"]["state"] == "done"


def test_an_outcome_does_not_repeat_the_plan_above_it(daemon: Daemon) -> None:
    daemon.dssctl("topics", "create", "terse", "--if-not-exists")
    daemon.dssctl("groups", "create", "terse@terse/#", "--start", "earliest")
    daemon.dssctl("produce", "terse", stdin=b"one\n")
    skip = ("offsets", "skip", "terse", "--to", "now", "-y", "--color", "never")
    child = AtTerminal("--endpoint", daemon.endpoint, *skip)
    child.expect_exact("1 record is passed over")
    child.expect_exact("undo with")
    assert re.search("STATE +done", printed(child))
    assert "SUMMARY" not in printed(child)
    assert "FLOOR-AFTER" not in printed(child)
    assert exit_code(child) == 0


def test_a_page_that_is_watched_is_drawn_anew_until_ctrl_c(daemon: Daemon) -> None:
    daemon.dssctl("topics", "create", "seen", "--if-not-exists")
    describe = ("topics", "describe", "seen", "--watch=0.2s")
    child = AtTerminal("--endpoint", daemon.endpoint, *describe)
    child.expect_exact("every 0.2 s")
    child.expect_exact("seen")
    child.expect_exact("\x1b[H")
    child.sendintr()
    assert exit_code(child) == 130


def test_a_dashboard_that_goes_to_a_file_is_refused_with_what_to_say(daemon: Daemon) -> None:
    program = f"{sys.executable} -m dssctl --endpoint {daemon.endpoint} top"
    line = f"{program} > /dev/null; {program} -o table > /dev/null && echo shown"
    child = pexpect.spawn("/bin/sh", ["-c", line], timeout=TIMEOUT_S, encoding="utf-8")
    child.expect_exact("for one look in text say -o table")
    child.expect_exact("shown")
    child.expect(pexpect.EOF)
    child.close()


def test_a_wait_shows_how_it_stands_and_ends_quietly_at_ctrl_c(daemon: Daemon) -> None:
    daemon.dssctl("topics", "create", "awaited")
    daemon.dssctl("groups", "create", "waiting@awaited/#", "--start", "earliest")
    daemon.dssctl("produce", "awaited", stdin=b"\x1b[2J\n")
    child = AtTerminal("--endpoint", daemon.endpoint, "wait", "group/waiting", "--for", "lag=0")
    child.expect_exact("lag is 1")
    child.sendintr()
    assert exit_code(child) == 130
    assert "Traceback" not in printed(child)


def test_found_records_are_safe_to_print_and_stand_before_the_end_of_the_search(
    daemon: Daemon,
) -> None:
    daemon.dssctl("topics", "create", "searched")
    daemon.dssctl("produce", "searched", stdin=b"\x1b[2Jgone\n")
    child = AtTerminal("--endpoint", daemon.endpoint, "records", "find", "searched", "--match", "g")
    child.expect_exact("\\x1b[2Jgone")
    child.expect_exact("note: looked at 1 of 1 offsets, 1 match")
    assert exit_code(child) == 0
    assert "\x1b[2J" not in printed(child)
