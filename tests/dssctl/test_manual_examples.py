"""Every example of the manual, run against a real daemon, from the first to the last."""

import os
import shlex
import subprocess
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.dssctl_call import Completed, Daemon, environment, run_forked
from support.forked_dssctl import forked_dssctl
from support.proof_share import only_in_proof
from support.started_program import ProgramProcess

REPO = Path(__file__).resolve().parents[2]
EXAMPLES = [
    (noun, line)
    for noun, examples in tomllib.loads((REPO / "scripts/manual_examples.toml").read_text()).items()
    for example in examples
    for line in example["run"].strip().splitlines()
]
NEEDS_A_SHELL = ("|", " > ", "$", ";")
NEEDS_A_FILE = ("contexts", "dssctl config")
"""A configuration of its own, which commands in this process have not."""
RECORDS = "".join(f"{each}\n" for each in range(8)).encode()
MEMBER_S_MAX = 60.0
LOOK_AGAIN_S = 0.05


@pytest.fixture(scope="module")
def prepared(daemon: Daemon, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder to work in, beside what the examples speak of."""
    folder = tmp_path_factory.mktemp("examples")
    programs = folder / "bin"
    programs.mkdir()
    daemon.dssctl("topics", "create", "orders", "--partitions", "4")
    daemon.dssctl("produce", "orders", stdin=RECORDS)
    daemon.dssctl("groups", "create", "billing@orders/#", "--start", "earliest")
    joins = ("consume", "orders/#", "--group", "billing", "--client-id", "anna")
    member = ProgramProcess(
        ["-m", "dssctl", "--endpoint", daemon.endpoint, *joins],
        stdout=subprocess.DEVNULL,
    )
    until = time.monotonic() + MEMBER_S_MAX
    while b"anna" not in daemon.dssctl("grants", "ls", "-g", "billing").stdout:
        assert time.monotonic() < until, "the member does not come"
        time.sleep(LOOK_AGAIN_S)
    with forked_dssctl(programs):
        yield folder
    member.terminate()
    member.wait()


@only_in_proof
@pytest.mark.slow("some fifty commands, a dozen of them as processes of a shell")
def test_the_examples_of_the_manual_work(
    prepared: Path, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(prepared)
    monkeypatch.setenv("HOME", str(prepared))
    monkeypatch.setenv("XDG_DATA_HOME", str(prepared / "data"))
    for noun, line in EXAMPLES:
        done = run(line, daemon, prepared)
        assert done.returncode == 0, (noun, line, done.stderr.decode())


def run(line: str, daemon: Daemon, folder: Path) -> Completed:
    """In this process where no shell is needed."""
    words = shlex.split(line)
    variables = environment(
        PATH=f"{folder}/bin{os.pathsep}{os.environ['PATH']}",
        DSSCTL_ENDPOINT=daemon.endpoint,
        DSSCTL_CONFIG=str(folder / "config.toml"),
    )
    if words[0] != "dssctl" or any(each in line for each in NEEDS_A_SHELL):
        return subprocess.run(
            ["bash", "-ec", line], env=variables, capture_output=True, check=False
        )
    if any(each in line for each in NEEDS_A_FILE):
        return run_forked(variables, *words[1:])
    return daemon.dssctl(*words[1:])
