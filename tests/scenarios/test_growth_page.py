"""From 4 partitions and 2 members to 64 and 32 in ``docs/growth.md`` goes as the page tells it."""

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from support.daemon_process import short_directory
from support.dssctl_call import environment
from support.prerequisites import need_program
from support.proof_share import only_in_proof
from support.served_daemon import served

PAGE = (Path(__file__).resolve().parents[2] / "docs/growth.md").read_text()
STORY = PAGE.partition("## From 4 partitions and 2 members to 64 and 32")[2].partition("\n## ")[0]
PATIENCE_S = 60.0
LOOK_AGAIN_S = 0.2
ENDED = "-- it ended with "
DIFFERS = ("HOLDER", "LAG", "OLDEST")
"""Columns that are as they happen to be."""


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", STORY, re.MULTILINE | re.DOTALL)


def steps() -> list[tuple[str, str]]:
    """Each command of the story, and what it printed where that is shown."""
    [block] = blocks("console")
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [(first, rest) for first, _, rest in (part.partition("\n") for part in parts)]


def plain(printed: str) -> list[list[str]]:
    """The cells of each line, but for those that differ from run to run."""
    lines = [re.split(r"  +", line.strip()) for line in printed.splitlines()]
    left_out = [at for at, name in enumerate(lines[0] if lines else ()) if name in DIFFERS]
    return [[cell for at, cell in enumerate(line) if at not in left_out] for line in lines]


class Bash:
    """A shell that runs one command after another."""

    def __init__(self, commands: IO[str], printed: IO[str]) -> None:
        self._commands = commands
        self._printed = printed

    def run(self, command: str) -> tuple[int, str]:
        """Its exit code, and what it printed."""
        self._commands.write(f"eval {shlex.quote(command)}; echo '{ENDED}'$?\n")
        self._commands.flush()
        printed = ""
        for line in self._printed:
            if line.startswith(ENDED):
                return int(line.removeprefix(ENDED)), printed
            printed += line
        raise AssertionError(f"the shell ended: {command}")

    def shown(self, command: str, expected: str) -> None:
        """Run it, where it only looks until it prints what the page has."""
        looks_until_s = time.monotonic() + (PATIENCE_S if " ls " in command else 0)
        while True:
            code, printed = self.run(command)
            assert code == 0, (command, printed, Path("errors").read_text())
            if not expected or plain(printed) == plain(expected):
                return
            assert time.monotonic() < looks_until_s, (command, printed)
            time.sleep(LOOK_AGAIN_S)


@contextmanager
def bash(endpoint: str) -> Iterator[Bash]:
    """Where a reader of the page is; what runs in its background ends with it."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    read, write = os.pipe()  # a command that reads its input must not read the next one
    loop = f'while IFS= read -r -u {read} line; do eval "$line"; done'
    with Path("errors").open("w") as errors:
        process = subprocess.Popen(
            ["bash", "-c", f"trap 'kill $(jobs -p); wait' EXIT; {loop}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=environment(PATH=path, DSSCTL_ENDPOINT=endpoint),
            pass_fds=(read,),
        )
    os.close(read)
    assert process.stdout is not None
    try:
        with os.fdopen(write, "w") as commands:
            yield Bash(commands, process.stdout)
    finally:
        process.wait(PATIENCE_S)
        process.stdout.close()


@pytest.mark.slow("thirty-two members, two growths and four counts")
@only_in_proof
def test_the_commands_of_the_page_lead_from_four_partitions_to_sixty_four(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for program in ("bash", "diff", "seq"):
        need_program(program)
    with short_directory() as folder, served() as (endpoint, _):
        monkeypatch.chdir(folder)
        for name, program in zip(("payments.py", "totals.py"), blocks("python"), strict=True):
            (folder / name).write_text(program)
        with bash(endpoint) as shell:
            for command, printed in steps():
                shell.shown(command, printed)
