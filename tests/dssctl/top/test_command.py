"""The command itself: without a terminal, and told what it cannot do."""

import json
import subprocess
import sys
from typing import Protocol

import pexpect
import pytest

from support.dssctl_call import Completed, call_dssctl, environment
from support.terminal import AtTerminal


class Daemon(Protocol):
    def dssctl(self, *arguments: str, stdin: bytes = b"") -> Completed: ...


def test_without_a_terminal_one_look_is_printed(daemon: Daemon) -> None:
    daemon.dssctl("topics", "create", "orders")
    daemon.dssctl("groups", "create", "billing@orders/#", "--start", "earliest")
    done = daemon.dssctl("top")
    assert done.returncode == 0
    assert b"\x1b" not in done.stdout
    text = done.stdout.decode()
    assert text.startswith("STATE ")
    assert "\nGROUPS\nNAME " in text
    assert "\nEVENTS\n" in text
    look = json.loads(daemon.dssctl("top", "-o", "json").stdout)
    assert (look["kind"], look["item"]["state"]) == ("Look", "serving")
    assert [each["name"] for each in look["item"]["groups"]] == ["billing"]


@pytest.mark.parametrize(
    "arguments",
    [("--theme", "pink"), ("--record", "a", "--replay", "b"), ("--record", "a")],
)
def test_what_does_not_go_is_refused_as_wrong_usage(arguments: tuple[str, ...]) -> None:
    done = call_dssctl("top", *arguments)
    assert done.returncode == 2
    assert done.stdout == b""


def test_a_terminal_that_cannot_be_drawn_on_is_told_what_to_use_instead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    child = AtTerminal("top", "groups")
    child.expect_exact("TERM is 'dumb'")
    child.expect_exact("dssctl top -o wide")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 2


def test_only_a_dashboard_loads_textual() -> None:
    program = (
        "import sys; from dssctl.main import main; main();"
        "sys.stderr.write('\\nMODULES ' + ' '.join(sys.modules))"
    )
    command = [sys.executable, "-c", program, "--endpoint", "unix:/nowhere/s", "top"]
    done = subprocess.run(command, capture_output=True, check=True, env=environment(), text=True)
    loaded = set(done.stderr.rpartition("MODULES ")[2].split())
    assert "grpc" in loaded
    assert not {each for each in loaded if each.startswith(("textual", "dssctl.top"))}
