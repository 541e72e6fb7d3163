"""What is left of a program whose standard streams are closed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

DSSCTL = f"{sys.executable} -m dssctl"
ENV = os.environ | {"DSSCTL_CONFIG": os.devnull, "COLUMNS": "80"}


def run(line: str, home: Path) -> subprocess.CompletedProcess[str]:
    env = ENV | {"XDG_STATE_HOME": str(home)}
    return subprocess.run(["sh", "-c", line], capture_output=True, text=True, env=env, check=False)


@pytest.mark.parametrize("command", ["version", "--help", "errors ls"])
def test_data_that_nobody_can_take_is_an_error(command: str, tmp_path: Path) -> None:
    done = run(f"{DSSCTL} {command} >&-", tmp_path)
    assert "error DSS1111: The output cannot be written" in done.stderr
    assert (done.returncode, done.stdout) == (74, "")


def test_an_error_that_nobody_is_told_keeps_its_exit_code(tmp_path: Path) -> None:
    done = run(f"{DSSCTL} errors explain nope 2>&-", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")


def test_with_all_of_them_closed_it_ends_in_order(tmp_path: Path) -> None:
    assert run(f"{DSSCTL} errors explain nope <&- >&- 2>&-", tmp_path).returncode == 2
    assert list(tmp_path.iterdir()) == [], "nothing was reported as a mistake of the tool"


def test_nothing_can_be_read_from_a_closed_input(tmp_path: Path) -> None:
    done = run(f"{DSSCTL} ops apply - <&-", tmp_path)
    assert done.returncode == 2
    assert "DSS1156" not in done.stderr
