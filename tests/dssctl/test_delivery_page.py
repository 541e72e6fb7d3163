"""The story of a key in ``docs/delivery.md`` goes as the page tells it, to the last word."""

import re
import shlex
from pathlib import Path

import pytest

from support.dssctl_call import Daemon
from support.page_blocks import Typed, blocks
from support.started_program import ProgramProcess

SPAN = re.compile(r"\b\d+(ms|s)\b")
REFUSED = 6
PATIENCE_S = 60.0


def plain(printed: str) -> list[list[str]]:
    """Without what differs from run to run: how long ago, and how wide."""
    return [SPAN.sub("T", line).split() for line in printed.splitlines()]


class Shell:
    """As much of one as the story needs."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self.program: ProgramProcess | None = None

    def run(self, typed: Typed) -> str:
        """Run it; what it printed."""
        command = typed.command
        words = shlex.split(command)
        if words[0] == "dssctl":
            done = self._daemon.dssctl(*words[1:])
            is_refused = "refused" in typed.comment
            assert done.returncode == (REFUSED if is_refused else 0), done.stderr
            return (done.stderr if is_refused else done.stdout).decode()
        if words[0] == "python":
            at = words.index(">")
            with Path(words[at + 1]).open("ab") as told, Path("errors").open("ab") as errors:
                self.program = ProgramProcess(words[1:at], stdout=told, stderr=errors)
        elif words[0] == "kill":
            self.end()
        else:
            assert words[0] == "grep", command
            lines = Path(words[2]).read_text().splitlines(keepends=True)
            return "".join(line for line in lines if words[1] in line)
        return ""

    def end(self) -> None:
        """The program that runs."""
        if self.program is not None:
            self.program.kill()
            self.program.wait(PATIENCE_S)
            self.program = None


@pytest.fixture
def folder(tmp_path: Path, daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a reader of the page is."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DSSCTL_ENDPOINT", daemon.endpoint)
    return tmp_path


def test_the_story_of_a_key_goes_as_it_is_told(daemon: Daemon, folder: Path) -> None:
    [orders, program, story] = blocks("docs/delivery.md", "json", "python", "console")
    (folder / "bills.py").write_text(program.text)
    (folder / "orders.jsonl").write_text(orders.text)
    shell = Shell(daemon)
    try:
        for each in story.commands():
            said = shell.run(each)
            assert not each.shown or plain(said) == plain(each.shown), each
    finally:
        shell.end()
