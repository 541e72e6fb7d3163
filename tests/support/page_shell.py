"""A shell that types the commands of a page one after the other, and what it needs around it.

Invariant: it keeps directory, variables and background from one command to the next, as that of a
reader does; what runs in its background ends with it. ``dssctl`` in it is the program of a shell
that starts at once (`support.forked_dssctl`).
"""

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

from support.dssctl_call import environment
from support.forked_dssctl import forked_dssctl

PATIENCE_S = 60.0
LOOK_AGAIN_S = 0.2
ENDED = "-- it ended with "


class Bash:
    """A shell that runs one command after another in a directory."""

    def __init__(self, commands: IO[str], printed: IO[str], errors: Path) -> None:
        self._commands = commands
        self._printed = printed
        self._errors = errors

    def run(self, command: str) -> tuple[int, str]:
        """Its exit code, and what it printed."""
        self._commands.write(f"eval {shlex.quote(command)}; echo '{ENDED}'$?\n\0")
        self._commands.flush()
        printed = ""
        for line in self._printed:
            before, ended, code = line.partition(ENDED)
            printed += before
            if ended:
                return int(code), printed
        raise AssertionError(f"the shell ended: {command}\n{self.errors()}")

    def errors(self) -> str:
        """All that was written to stderr so far."""
        return self._errors.read_text()

    def shown(self, command: str, expected: str, differs: tuple[str, ...]) -> None:
        """Run it, where it only looks until it prints what the page has.

        Columns of these names are as they happen to be.
        """
        looks_until_s = time.monotonic() + (PATIENCE_S if " ls " in command else 0)
        while True:
            code, printed = self.run(command)
            assert code == 0, (command, printed, self.errors())
            if not expected or plain(printed, differs) == plain(expected, differs):
                return
            assert time.monotonic() < looks_until_s, (command, printed)
            time.sleep(LOOK_AGAIN_S)


def plain(printed: str, differs: tuple[str, ...]) -> list[list[str]]:
    """The cells of each line, but for those of the columns that differ from run to run."""
    lines = [re.split(r"  +", line.strip()) for line in printed.splitlines()]
    left_out = [at for at, name in enumerate(lines[0] if lines else ()) if name in differs]
    return [[cell for at, cell in enumerate(line) if at not in left_out] for line in lines]


@contextmanager
def bash(folder: Path, **variables: str) -> Iterator[Bash]:
    """One in this directory."""
    programs = folder / ".programs"
    programs.mkdir()
    path = f"{programs}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    read, write = os.pipe()  # a command that reads its input must not read the next one
    loop = f"while IFS= read -r -d '' -u {read} line; do eval \"$line\"; done"
    errors = folder / ".errors"
    with forked_dssctl(programs), errors.open("w") as stderr:
        process = subprocess.Popen(
            ["bash", "-c", f"trap 'kill $(jobs -p); wait' EXIT; {loop}"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env=environment(PATH=path, PYTHONPATH=os.pathsep.join(sys.path), **variables),
            pass_fds=(read,),
        )
        os.close(read)
        assert process.stdout is not None
        try:
            with os.fdopen(write, "w") as commands:
                yield Bash(commands, process.stdout, errors)
        finally:
            process.wait(PATIENCE_S)
            process.stdout.close()
