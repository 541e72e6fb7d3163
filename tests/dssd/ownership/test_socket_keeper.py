"""What becomes of a socket that is removed or replaced while somebody listens there."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from dssd.addresses import UnixAddress
from dssd.events.kinds import SOCKET_LOST, SOCKET_REMOVED
from dssd.events.model import Event
from dssd.ownership.socket_keeper import SocketKeeper
from support.daemon_process import short_directory

NOBODY = 65_534


@pytest.fixture
def path() -> Iterator[Path]:
    """Where somebody listens."""
    with short_directory() as directory, socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(directory / "d.sock"))
        listening.listen()
        yield directory / "d.sock"


@pytest.fixture
def told() -> list[Event]:
    return []


@pytest.fixture
def keeper(path: Path, told: list[Event]) -> SocketKeeper:
    path.with_name(".kept.d.sock").touch()  # of one that was killed
    return SocketKeeper([UnixAddress(path)], told.append)


def connect(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))


def test_a_removed_socket_is_put_back_and_that_is_told(
    path: Path, keeper: SocketKeeper, told: list[Event]
) -> None:
    keeper.look()
    assert told == []
    for times in (1, 2):
        path.unlink()
        keeper.look()
        keeper.look()
        connect(path)
        assert [each.kind for each in told] == [SOCKET_REMOVED] * times
    assert told[0].subject == f"unix:{path}"


def test_what_replaced_a_socket_is_left_alone_until_it_goes(
    path: Path, keeper: SocketKeeper, told: list[Event]
) -> None:
    path.unlink()
    path.write_text("another's")
    keeper.look()
    keeper.look()
    assert path.read_text() == "another's"
    assert [each.kind for each in told] == [SOCKET_LOST]
    assert "File exists" in told[0].sentence
    path.unlink()
    keeper.look()
    connect(path)
    assert [each.kind for each in told] == [SOCKET_LOST, SOCKET_REMOVED]


def test_a_socket_whose_second_name_went_too_is_told_to_be_lost_once(
    path: Path, keeper: SocketKeeper, told: list[Event]
) -> None:
    for each in path.parent.iterdir():
        each.unlink()
    keeper.look()
    keeper.look()
    assert [each.kind for each in told] == [SOCKET_LOST]


def test_a_daemon_that_closes_its_sockets_puts_none_back(
    path: Path, keeper: SocketKeeper, told: list[Event]
) -> None:
    keeper.let_go()
    path.unlink()
    keeper.look()
    assert not list(path.parent.iterdir())
    assert told == []


def test_a_second_name_that_cannot_go_holds_no_stop_up(path: Path, keeper: SocketKeeper) -> None:
    path.parent.chmod(0o555)
    user = os.geteuid()
    try:
        # Root may remove anything.
        os.seteuid(user or NOBODY)
        keeper.let_go()
    finally:
        os.seteuid(user)
        path.parent.chmod(0o700)
    assert path.with_name(".kept.d.sock").exists()
