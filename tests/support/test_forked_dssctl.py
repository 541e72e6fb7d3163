"""A `dssctl` that a shell starts is forked, but behaves like any other for the shell."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.dssctl_call import environment
from support.forked_dssctl import forked_dssctl


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Path]:
    with forked_dssctl(tmp_path):
        yield tmp_path


def run(line: str, programs: Path) -> "subprocess.CompletedProcess[str]":
    variables = environment(PATH=f"{programs}{os.pathsep}{os.environ['PATH']}")
    return subprocess.run(
        ["bash", "-c", line], env=variables, capture_output=True, text=True, check=False
    )


def test_it_has_the_streams_variables_and_directory_that_the_shell_gives(programs: Path) -> None:
    line = "mkdir w; cd w; NO_COLOR=1 dssctl errors ls -o jsonl | head -n 1 >first; wc -l <first"
    done = run(f"cd {programs}; {line}", programs)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "1", "")
    assert (programs / "w/first").read_text().startswith('{"code":')


def test_the_shell_has_its_exit_code(programs: Path) -> None:
    done = run("dssctl errors explain nope", programs)
    assert done.returncode == 2
    assert "nope" in done.stderr


def test_what_one_writes_another_reads_at_the_same_time(programs: Path) -> None:
    done = run("dssctl errors ls -o json | dssctl ops apply -", programs)
    assert (done.returncode, done.stdout) == (2, "")
    assert "its kind is not OperationPlan" in done.stderr
