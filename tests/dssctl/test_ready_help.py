"""The help that was written before is Typer's own."""

import os
import subprocess
import sys

import pytest

from dssctl.invocation import run
from dssctl.ready_help import WIDTHS, ready_help


@pytest.mark.parametrize("columns", [*WIDTHS, WIDTHS[-1] + 57])
def test_at_a_usual_width_it_is_byte_for_byte_what_typer_writes(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert run(["--help"]) == 0
    assert ready_help() == capsys.readouterr().out


@pytest.mark.parametrize("columns", [1, WIDTHS[0] - 1, WIDTHS[0] + 1])
def test_at_another_width_there_is_none(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert ready_help() == ""


@pytest.mark.parametrize("named", ["", "0", "-3", "wide"])
def test_a_width_that_is_none_is_that_of_a_pipe(named: str) -> None:
    program = [sys.executable, "-m", "dssctl", "--help"]
    env = os.environ | {"COLUMNS": named}
    done = subprocess.run(program, stdout=subprocess.PIPE, env=env, check=True, text=True)
    assert max(map(len, done.stdout.splitlines())) <= WIDTHS[0]


def test_a_width_between_is_answered_by_typer() -> None:
    program = [sys.executable, "-m", "dssctl", "-h"]
    env = os.environ | {"COLUMNS": "90"}
    done = subprocess.run(program, stdout=subprocess.PIPE, env=env, check=True, text=True)
    assert WIDTHS[0] < max(map(len, done.stdout.splitlines())) <= 90
