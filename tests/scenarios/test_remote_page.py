"""The page on a client on another host, command by command, on two hosts of a network.

The hosts are network namespaces. What the page shows is what its commands print, with the address
of the link in place of the name.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dss_core.errors import ExitCode, LoginRefused, PermissionDenied
from support.daemon_process import short_directory
from support.dssctl_call import environment
from support.network_namespaces import Host, two_hosts
from support.page_blocks import blocks
from support.prerequisites import need_program
from support.proof_share import only_in_proof

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "remote.md").read_text()
NAME = "dss.example"
COPIED = ("ca.pem", "shipper.token", "watcher.token", "press.token")
STEP_S_MAX = 60.0
LOCAL = "dssctl --endpoint unix:dssd.sock"
LOOK = "dssctl contexts add look --endpoint dss://dss.example:7233 --tls-ca ca.pem --token-file watcher.token"  # noqa: E501 - one command

pytestmark = [pytest.mark.slow("a daemon and thirty commands, each a process"), only_in_proof]


def tokens() -> list[str]:
    """The commands in the text that make a token."""
    return [each.replace("\n", " ") for each in re.findall(r"`dssctl (tokens\s+add[^`]+)`", PAGE)]


def shown() -> list[tuple[str, str]]:
    """The commands of the transcripts, each with what it prints."""
    transcripts = [block.commands() for block in blocks("docs/remote.md", "")]
    return [(each.command, each.shown) for typed in transcripts for each in typed]


def commands() -> list[list[str]]:
    """Those at the daemon's host, and those at the other one."""
    return [[each.command for each in block.commands()] for block in blocks("docs/remote.md", "sh")]


def revocations() -> list[tuple[str, str]]:
    """The commands that take something away, each with what it says of it."""
    section = PAGE.partition("## Revoke it")[2].partition("\n## ")[0]
    return re.findall(r"^\| `dssctl ([^`]+)` \| (.+) \|$", section, re.MULTILINE)


class Typist:
    """Types at one of the hosts, in a folder of its own."""

    def __init__(self, host: Host, name: str, folder: Path) -> None:
        self.folder = folder
        self._host = host
        self._name = name
        """Of the daemon's host, as the page's is called here."""
        folder.mkdir()

    def start(self, command: str) -> subprocess.Popen[str]:
        """Begin a command."""
        written = command.replace(f"DNS:{NAME}", f"IP:{self._name}").replace(NAME, self._name)
        return subprocess.Popen(
            [*self._host.enter, "bash", "-e", "-o", "pipefail", "-c", written],
            cwd=self.folder,
            env=environment(
                PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
                HOME=str(self.folder),
                DSSCTL_CONFIG=str(self.folder / "config.toml"),
                DSSCTL_CONNECT_WAIT="30",
            ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def typed(self, command: str, expected: ExitCode = ExitCode.OK) -> str:
        """What a command prints, as the page would show it."""
        with self.start(command) as process:
            try:
                said, _ = process.communicate(timeout=STEP_S_MAX)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        assert process.returncode == expected, f"{command}: {process.returncode} {said}"
        return said.replace(self._name, NAME)


@contextmanager
def served(here: Typist, commands: str) -> Iterator[None]:
    """The daemon of the page, and what is set up at its host."""
    until_told = "echo is ready; cat >/dev/null"
    with here.start(f"trap 'kill $!; wait' EXIT\n{commands}\n{until_told}") as script:
        assert script.stdin is not None
        assert script.stdout is not None
        said: list[str] = []
        try:
            for line in script.stdout:
                said.append(line)
                if line == "is ready\n":
                    break
            else:
                raise AssertionError("".join(said))
            yield
        finally:
            script.stdin.close()


@pytest.fixture
def hosts() -> Iterator[tuple[Typist, Typist]]:
    for program in ("openssl", "bash"):
        need_program(program)
    with two_hosts() as (first, second), short_directory() as folder:
        here = Typist(first, first.address, folder / "here")
        there = Typist(second, first.address, folder / "there")
        on_daemons_host, _ = commands()
        assert len(on_daemons_host) == 6, "and one that copies files"
        with served(here, "\n".join(on_daemons_host)):
            for each in tokens():
                here.typed(f"{LOCAL} {each}")
            for name in COPIED:
                shutil.copy(here.folder / name, there.folder / name)
            yield here, there


def test_a_client_on_another_host_is_ten_commands_away_and_is_let_in_until_revoked(
    hosts: tuple[Typist, Typist],
) -> None:
    here, there = hosts
    _, [setting_up, sending, taking] = commands()
    there.typed(setting_up)
    there.typed(sending)
    assert "hello" in there.typed(taking).split()
    consumes_until_it_is_ended(there)
    there.typed(LOOK)
    for command, printed in shown():
        expected = ExitCode.DENIED if re.search(r"^error ", printed, re.MULTILINE) else ExitCode.OK
        assert there.typed(command, expected) == printed, command
    (allows, *_) = re.findall(r"dssctl (principals allow .+ --role produce .+)\.\n", PAGE)
    here.typed(f"{LOCAL} {allows}")
    there.typed("echo more | dssctl -c look produce orders")
    for command, said in revocations():
        if "shipper" in command:
            here.typed(f"{LOCAL} {agreed(command)}")
            refused = there.typed(sending, ExitCode.DENIED)
            (told,) = [each for each in (PermissionDenied, LoginRefused) if each.code in refused]
            assert f"`{told.__name__}` (`{told.code}`)" in said, command


def consumes_until_it_is_ended(there: Typist) -> None:
    """The program of the page, with a token that may do nothing else."""
    (program,) = blocks("docs/remote.md", "python")
    (there.folder / "press.py").write_text(program.text)
    with there.start(f"exec python press.py dss://{NAME}:7233") as press:
        assert press.stdout is not None
        try:
            assert press.stdout.readline() == "orders hello\n"
        finally:
            press.send_signal(signal.SIGTERM)
        assert press.wait(STEP_S_MAX) == 0, press.stdout.read()


def agreed(command: str) -> str:
    """The command, without the question that it asks a person."""
    return f"{command} -y" if " deny " in command or " rm " in command else command
