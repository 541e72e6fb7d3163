import os
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from dssd.service.notify import BEAT_S, ServiceManager


@pytest.fixture
def heard(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(5)
        yield manager


def found(heard: socket.socket, **beside: str) -> ServiceManager:
    manager = ServiceManager.found({"NOTIFY_SOCKET": heard.getsockname(), **beside})
    assert manager is not None
    return manager


def test_a_manager_is_told_in_its_lines(heard: socket.socket) -> None:
    with closing(found(heard)) as manager:
        manager.ready("serving")
        manager.alive("serving: 1 topics")
        manager.stopping()
    assert heard.recv(999) == b"READY=1\nSTATUS=serving"
    assert heard.recv(999) == b"WATCHDOG=1\nSTATUS=serving: 1 topics"
    assert heard.recv(999) == b"STOPPING=1\nSTATUS=stopping"


def test_jobs_inherit_nothing_of_the_manager(heard: socket.socket) -> None:
    environment = {"NOTIFY_SOCKET": heard.getsockname(), "WATCHDOG_USEC": "1", "HOME": "/"}
    manager = ServiceManager.found(environment)
    assert manager is not None
    manager.close()
    assert environment == {"HOME": "/"}


def test_without_a_manager_nobody_is_told() -> None:
    assert ServiceManager.found({}) is None


@pytest.mark.parametrize(
    ("usec", "pid", "beat_s"),
    [
        ("3000000", "own", 1.0),
        ("3000000", "", 1.0),
        ("3000000", "1", BEAT_S),
        ("60000000", "", BEAT_S),
        ("soon", "", BEAT_S),
    ],
)
def test_beats_are_wanted_three_times_a_watchdog(
    heard: socket.socket, usec: str, pid: str, beat_s: float
) -> None:
    said = str(os.getpid()) if pid == "own" else pid
    with closing(found(heard, WATCHDOG_USEC=usec, WATCHDOG_PID=said)) as manager:
        assert manager.beat_s == beat_s


def test_a_manager_that_is_gone_is_logged_and_no_more(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    manager = ServiceManager.found({"NOTIFY_SOCKET": str(tmp_path / "gone")})
    assert manager is not None
    with closing(manager):
        manager.ready("serving")
    assert "was not told READY=1" in caplog.text
