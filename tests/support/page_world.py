"""What the pages for operators speak of: a daemon, a topic, a group at work, dead letters, files.

The directories of a machine that pages name, `/var`, `/etc`, `/run`, `/tmp`, `/data`, are in a
root of this world's own, as is the home of whoever types. Invariant: daemon and members end with
the block, and nothing outside of the root is written.
"""

import asyncio
import json
import os
import re
import shlex
import signal
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar
from unittest.mock import patch

import pexpect

import dss_client
from dss_core.errors import ExitCode
from support.daemon_process import short_directory
from support.dssctl_call import environment
from support.page_blocks import Block, Typed
from support.page_shell import Bash, bash
from support.served_daemon import wait_until_it_listens
from support.started_program import ProgramProcess
from support.terminal import AtTerminal

MEMBER = Path(__file__).parents[1] / "scenarios/programs/page_member.py"
MEMBERS = ("worker-1", "worker-2", "worker-3")
PATIENCE_S = 60.0
LOOK_AGAIN_S = 0.1
PARTITIONS = 4
RECORDS = 24_000
"""So many that each stream has one at the offset that the pages ask for, 4711."""
DEAD = PARTITIONS * 13
"""What the members reject: so many of each stream."""
ERRORS = {"5f0c": "no price", "77aa": "no address"}
"""How the pages name the errors of the members."""

_OF_THE_MACHINE = re.compile(r"(?<![\w/.~-])/(?=(var|etc|run|tmp|data)/)")
_ENDLESS = re.compile(r"^dssctl (watch\b|.* --watch\b|.* -f\b)")
_ASKS = re.compile(
    r"^dssctl (-c \w+ )?(dlq (redrive|discard)|rq (retry-now|skip|dead)|tokens rm"
    r"|principals deny|ops undo|records skip|topics (grow|add-storage|switch)"
    r"|shards set-count|(replays|exports|backfills|audits) create|jobs (pause|cancel|rm|resume))\b"
)
_SILENT = re.compile(
    r" > |^PS1=|^dssd check|^dssctl (produce|contexts use|config set|dlq export)\b"
)
"""Commands that print nothing, or elsewhere."""
_LABEL = re.compile(r"(?<!\S)[A-Z][A-Z/-]+(?!\S)")
INTERRUPTED = 130
CTRL_Q = "\x11"
KEY_AGAIN_S = 1.0
STILL_THERE = -1
ERRORS_CHARACTERS = 2_000
"""How much of what was told on stderr a failure shows."""


T = TypeVar("T")
Act = Callable[["World"], None]
"""Something that happens between two commands."""


class World:
    """It, with a shell in the home. Built by `world`."""

    def __init__(self, root: Path, shell: Bash, variables: dict[str, str]) -> None:
        self.root = root
        self.shell = shell
        self.home = root / "home"
        self.data = root / "var/lib/dssd"
        self.endpoint = f"unix:{self.data}/dssd.sock"
        self.names: dict[str, str] = {}
        """What stands for a name of the page, where nobody can choose it."""
        self._variables = variables
        self._daemon: ProgramProcess | None = None
        self._members: dict[str, ProgramProcess] = {}

    def here(self, command: str) -> str:
        """The command with the paths and names of this world."""
        command = _OF_THE_MACHINE.sub(f"{self.root}/", command)
        for name, own in self.names.items():
            command = command.replace(name, own)
        return command

    def typed(self, each: Typed) -> tuple[int, str]:
        """Type a command as the page has it, with a yes where it asks; exit code and output."""
        command = self.here(each.command)
        if _ENDLESS.match(command):
            return self.until_it_told("-m", *shlex.split(command))
        if re.match(r"dssctl top\b(?!.* -o )", command):
            return self.at_a_terminal(command)
        if command.startswith("dssd serve"):
            self.shell.run(f"{command.removesuffix(' &')} &")
            command = "dssctl wait daemon --for ready"
        if _ASKS.match(command) and not re.search(r" (-y|--yes|--dry-run)\b", command):
            first, *others = re.split(r"( [|>] )", command, maxsplit=1)
            command = "".join([f"{first} --yes", *others])
        return self.shell.run(command)

    def until_it_told(self, *words: str, of: str = "") -> tuple[int, str]:
        """Run ``python WORDS``, which does not end, until it told of this; then press Ctrl-C."""
        told = self.home / ".told"
        with told.open("w") as out:
            process = ProgramProcess(words, stdout=out, stderr=out, env=self._environment())
        try:
            self._wait(
                lambda: (
                    (bool(text := told.read_text()) and of in text) or process.poll() is not None
                )
            )
            process.send_signal(signal.SIGINT)
            return process.wait(PATIENCE_S), told.read_text()
        finally:
            process.kill()
            process.wait()

    def at_a_terminal(self, command: str) -> tuple[int, str]:
        """Run the dashboard until it has drawn its table, and then press ctrl+q."""
        with patch.dict(os.environ, self._environment() | {"TERM": "xterm-256color"}):
            screen = AtTerminal(*shlex.split(command)[1:])
        screen.expect("LAG")
        until_s = time.monotonic() + PATIENCE_S
        ended = False
        while not ended and time.monotonic() < until_s:
            screen.send(CTRL_Q)  # what is typed before it takes keys is lost
            ended = screen.expect([pexpect.TIMEOUT, pexpect.EOF], timeout=KEY_AGAIN_S) == 1
        screen.close(force=True)
        return STILL_THERE if screen.exitstatus is None else screen.exitstatus, "LAG"

    def follow(
        self,
        found: Iterable[Block],
        before: Mapping[str, Act] | None = None,
        exits: Mapping[str, int] | None = None,
        says: Mapping[str, str] | None = None,
    ) -> None:
        """Type all commands of blocks, in order; each does what the page says.

        What is given is by the words that a command begins with: what happens ``before`` the first
        one, what each ``exits`` with where that is not 0, and what each ``says``.
        """
        acts, texts = dict(before or {}), dict(says or {})
        for each in (each for block in found for each in block.commands()):
            for act in taken(acts, each):
                act(self)
            code, printed = self.typed(each)
            told = (each, printed, self.shell.errors()[-ERRORS_CHARACTERS:])
            ends = INTERRUPTED if _ENDLESS.match(each.command) else ExitCode.OK
            assert code in (taken(dict(exits or {}), each) or [ends]), told
            assert printed or _SILENT.search(each.command), told
            assert all(text in printed for text in taken(texts, each)), told
            assert resembles(printed, each.shown), told
        assert not acts | texts, "commands that are not on the page"

    def start(self) -> None:
        """The daemon."""
        log = self.root / "var/log/dssd.log"
        with log.open("wb") as out:
            serve = ("-m", "dssd", "serve", "--data-dir", str(self.data))
            self._daemon = ProgramProcess(serve, stderr=out, env=self._environment())
        wait_until_it_listens(self._daemon, log)

    def stop(self) -> None:
        """The daemon, and the members."""
        for name in list(self._members):
            self.leave(name)
        if self._daemon is not None:
            self._daemon.terminate()
            assert self._daemon.wait(PATIENCE_S) == 0
            self._daemon = None

    def join(self, *names: str) -> None:
        """Let members begin, and wait until they have streams."""
        for name in names:
            command = [str(MEMBER), name]
            self._members[name] = ProgramProcess(command, env=self._environment())
        for name in names:
            self._wait(partial(self._has_streams, name))

    def leave(self, name: str) -> None:
        """Let a member end in peace."""
        member = self._members.pop(name)
        member.terminate()
        member.wait(PATIENCE_S)

    def dssctl(self, *words: str) -> str:
        """What a command of the tool prints."""
        code, printed = self.shell.run(shlex.join(["dssctl", "--endpoint", self.endpoint, *words]))
        assert code == 0, (words, self.shell.errors())
        return printed

    def end(self) -> None:
        """Kill what still runs."""
        for each in (*self._members.values(), self._daemon):
            if each is not None:
                each.kill()
                each.wait()

    def _has_streams(self, name: str) -> bool:
        return name in self.dssctl("grants", "ls", "-g", "billing")

    def _environment(self) -> dict[str, str]:
        return environment(DSSCTL_ENDPOINT=self.endpoint, **self._variables)

    def _wait(self, condition: Callable[[], bool]) -> None:
        until_s = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < until_s, self.shell.errors()
            time.sleep(LOOK_AGAIN_S)


def taken(given: dict[str, T], each: Typed) -> list[T]:
    """What is given for this command, taken out."""
    return [given.pop(words) for words in [*given] if each.command.startswith(words)]


def free_port() -> int:
    """One of loopback that nobody had a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


def resembles(printed: str, shown: str) -> bool:
    """Whether the output has the headers and labels of what the page shows, in its order."""
    words = iter(printed.split())
    return all(label in words for label in _LABEL.findall(shown))


@contextmanager
def world() -> Iterator[World]:
    """One with a daemon that has nothing."""
    with short_directory() as root:
        for folder in ("home", "etc", "run/dssd", "tmp", "data", "var/lib", "var/log"):
            (root / folder).mkdir(parents=True)
        home = root / "home"
        variables = {
            "HOME": str(home),
            "TMPDIR": str(root / "tmp"),
            "DSSCTL_CONFIG": str(home / "config.toml"),
            "XDG_CONFIG_HOME": str(home / ".config"),
            "XDG_STATE_HOME": str(home / ".local/state"),
        }
        with bash(home, **variables) as shell:
            made = World(root, shell, variables)
            try:
                made.shell.run(f"export DSSCTL_ENDPOINT={made.endpoint}")
                made.start()
                yield made
            finally:
                made.end()


@contextmanager
def world_at_work() -> Iterator[World]:
    """One whose members took what they take, and are there."""
    with world() as made:
        asyncio.run(_filled(made.endpoint))
        made.join(*MEMBERS)
        made.dssctl("wait", "group/billing", "--for", f"lag=0,dead={DEAD},retrying=1")
        errors = json.loads(made.dssctl("dlq", "errors", "billing", "-o", "json"))["items"]
        for name, text in ERRORS.items():
            [found] = [each for each in errors if text in each["error"]]
            made.names[name] = found["fingerprint"]
        yield made


async def _filled(endpoint: str) -> None:
    """The topic with its records, and the group."""
    async with dss_client.connect(endpoint=endpoint) as client:
        await client.topics.create("orders", partitions=PARTITIONS)
        await client.groups.create(
            "$share/billing/orders/#", start="earliest", max_deliver=5, backoff=[3_600.0]
        )
        keys = [f"cust-{each % 997}".encode() for each in range(RECORDS)]
        async with client.producer("orders") as producer:
            await producer.send_columns([_order(each) for each in range(RECORDS)], keys)
            for key, subject, headers in (
                (b"ann", "orders/eu/1", {"trace": b"4f1"}),
                (b"ida", "orders/us/2", {}),
            ):
                payload = b'{"id": 0, "said": "timeout of the bank"}'
                await producer.send(payload, key=key, subject=subject, headers=headers)


def _order(number: int) -> bytes:
    return json.dumps({"id": number, "n": number % 7}).encode()
