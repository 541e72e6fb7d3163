"""A daemon that comes, and goes, while a command wants it."""

import asyncio
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from dss_core.errors import DssError, IllegalArgument, Unreachable
from dssctl import connection
from dssctl.config import configure
from dssctl.settings import Settings
from support.started_program import ProgramProcess

TIMEOUT_S = 60.0


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short-named: a unix socket's path is bounded."""
    with tempfile.TemporaryDirectory(prefix="dssctl-", dir="/tmp") as name:
        yield Path(name)


@contextmanager
def process(*arguments: str, wait_s: str = "20") -> Iterator[ProgramProcess]:
    """A program of ours, ended in the end."""
    started = ProgramProcess(
        ["-m", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"DSSCTL_CONNECT_WAIT": wait_s},
    )
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


def serving(folder: Path) -> Sequence[str]:
    return ("dssd", "serve", "--data-dir", f"{folder}/d", "--listen", f"unix:{folder}/s")


def said_until(output: ProgramProcess, words: bytes) -> bytes:
    """Stderr, up to the line that has the words."""
    assert output.stderr is not None
    said = b""
    while words not in said:
        line = output.stderr.readline()
        assert line, said
        said += line
    return said


def test_a_command_waits_for_a_daemon_that_is_being_started(folder: Path) -> None:
    create = ("dssctl", "--endpoint", f"unix:{folder}/s", "topics", "create", "t")
    with process(*create) as command, process(*serving(folder)):
        printed, said = command.communicate(timeout=TIMEOUT_S)
        assert command.returncode == 0, said.decode()
        assert b"t" in printed


@pytest.mark.parametrize("endpoint", ["unix:/nowhere/s", "127.0.0.1:1"])
def test_without_a_wait_an_absent_daemon_is_told_at_once(
    endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect_s = 0.0 if endpoint.startswith("unix:") else 600.0
    began_at = time.monotonic()
    settings = Settings(endpoint=endpoint, connect_s=connect_s)
    with pytest.raises(Unreachable):
        connection.ask(settings, lambda client: client.daemon.status())
    assert time.monotonic() - began_at < TIMEOUT_S


def test_only_an_absent_daemon_is_asked_again() -> None:
    answers = iter([Unreachable(), Unreachable(), DssError()])

    async def question(_client: object) -> None:
        raise next(answers)

    settings = Settings(endpoint="unix:/nowhere/s", timeout_s=600, connect_s=600)
    with pytest.raises(DssError) as failure:
        connection.ask(settings, question)
    assert type(failure.value) is DssError


@pytest.mark.parametrize("given", ["soon", "-1", "inf", "nan"])
def test_a_wait_that_is_no_number_of_seconds_is_refused(
    given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DSSCTL_CONNECT_WAIT", given)
    monkeypatch.setenv("DSSCTL_CONFIG", os.devnull)
    with pytest.raises(IllegalArgument, match="DSSCTL_CONNECT_WAIT"):
        configure(Settings(), "groups ls")


def test_the_wait_is_never_longer_than_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSSCTL_CONNECT_WAIT", "7")
    monkeypatch.setenv("DSSCTL_CONFIG", os.devnull)
    settings, hasty = Settings(), Settings(timeout_s=0.5)
    configure(settings, "groups ls")
    configure(hasty, "groups ls")
    assert (settings.connect_wait_s, hasty.connect_wait_s) == (7, 0.5)


def test_a_member_notes_the_outage_and_its_end(folder: Path) -> None:
    consume = ("dssctl", "--endpoint", f"unix:{folder}/s", "consume", "t/#", "--group", "g")
    with process(*serving(folder)) as first:
        said_until(first, b"listening on")
        with process(*consume) as member:
            assert b"note: no topic matches t/# yet" in said_until(member, b"created group g")
            first.kill()
            first.wait()
            lost = said_until(member, b"lost its connection")
            assert lost.startswith(b"note: the session lost its connection to unix:")
            with process(*serving(folder)):
                assert b"lost" not in said_until(member, b"is connected to unix:")


def test_a_producer_notes_the_outage_and_its_end(folder: Path) -> None:
    produce = ("dssctl", "--endpoint", f"unix:{folder}/s", "produce", "t")
    with process(*serving(folder)) as first:
        said_until(first, b"listening on")
        create = ("dssctl", "--endpoint", f"unix:{folder}/s", "topics", "create", "t")
        with process(*create) as created:
            created.communicate(timeout=TIMEOUT_S)
        with process(*produce) as producer:
            assert producer.stdin is not None
            producer.stdin.write(b"one\n")
            producer.stdin.flush()
            asyncio.run(stored(folder))
            first.kill()
            first.wait()
            said_until(producer, b"note: the producer of t lost its connection")
            with process(*serving(folder)):
                producer.stdin.write(b"two\n")
                producer.stdin.flush()
                said_until(producer, b"note: the producer of t is connected to unix:")


async def stored(folder: Path) -> None:
    """Wait until the first record is."""
    from dss_client import connect

    async with connect(endpoint=f"unix:{folder}/s") as client:
        async for _record in client.read("t/#", follow=True, records_max=1):
            return
