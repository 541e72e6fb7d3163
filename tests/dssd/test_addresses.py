import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dss_core.errors import AddressInUse, ExitCode, IllegalConfig, SocketPathTooLong
from dssd.addresses import (
    OPEN,
    CertificateName,
    Clients,
    Policy,
    TcpAddress,
    UnixAddress,
    parse_address,
)


@pytest.fixture
def short_path() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="dss-") as directory:
        yield Path(directory)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("unix:/run/dssd.sock", UnixAddress(Path("/run/dssd.sock"))),
        ("127.0.0.1:7233", TcpAddress("127.0.0.1", 7233)),
        ("127.8.8.8:0", TcpAddress("127.8.8.8", 0)),
        ("localhost:7233", TcpAddress("localhost", 7233)),
        ("[::1]:7233", TcpAddress("::1", 7233)),
    ],
)
def test_addresses_are_read(text: str, address: UnixAddress | TcpAddress) -> None:
    assert parse_address(text) == address
    assert parse_address(str(address)) == address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (
            "0.0.0.0:7233,tls,clients=tokens",
            TcpAddress("0.0.0.0", 7233, Policy(tls=True, clients=Clients.TOKENS)),
        ),
        (
            "dss.example:1,clients=certs,tls",
            TcpAddress("dss.example", 1, Policy(tls=True, clients=Clients.CERTS)),
        ),
        (
            "[::]:1,tls,clients=certs,names=uri",
            TcpAddress("::", 1, Policy(True, Clients.CERTS, CertificateName.URI)),
        ),
        ("127.0.0.1:1,clients=tokens", TcpAddress("127.0.0.1", 1, Policy(clients=Clients.TOKENS))),
        ("127.0.0.1:1", TcpAddress("127.0.0.1", 1, OPEN)),
        ("unix:/s,clients=tokens", UnixAddress(Path("/s,clients=tokens"))),
    ],
)
def test_a_policy_stands_behind_its_address(text: str, address: UnixAddress | TcpAddress) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize(
    "policy",
    [
        *("tls", "clients=certs", "tls,clients=", "tls,clients=anybody", "tls,clients=all"),
        *("tls=1,clients=tokens", "tls,tls,clients=tokens", "clients", "names=cn", "owner=me", ""),
        *("tls,clients=tokens,names=cn", "tls,clients=certs,names=dns"),
    ],
)
def test_a_policy_that_is_none_is_refused(policy: str) -> None:
    with pytest.raises(IllegalConfig):
        parse_address(f"127.0.0.1:1,{policy}")


def test_an_address_with_tls_is_told_as_clients_write_it() -> None:
    assert str(parse_address("[::1]:1,tls,clients=tokens")) == "dss://[::1]:1"


@pytest.mark.parametrize("text", ["0.0.0.0:7233", "[::]:7233", "10.0.0.1:7233", "example.org:1"])
def test_tcp_beyond_loopback_is_refused(text: str) -> None:
    with pytest.raises(IllegalConfig, match="loopback") as refused:
        parse_address(text)
    assert refused.value.exit_code == ExitCode.CONFIG


@pytest.mark.parametrize(
    "text", ["", "7233", "127.0.0.1", "127.0.0.1:", "127.0.0.1:99999", "localhost:+1", "unix:"]
)
def test_other_forms_are_refused(text: str) -> None:
    with pytest.raises(IllegalConfig):
        parse_address(text)


def test_a_socket_path_must_fit_into_a_socket_address() -> None:
    longest = "/" + "x" * 106
    assert parse_address(f"unix:{longest}") == UnixAddress(Path(longest))
    with pytest.raises(SocketPathTooLong) as refused:
        parse_address(f"unix:{longest}x")
    assert refused.value.fields["length"] == "108"
    assert refused.value.exit_code == ExitCode.CONFIG


def test_the_bound_of_a_socket_path_counts_bytes() -> None:
    with pytest.raises(SocketPathTooLong):
        parse_address("unix:/" + "ß" * 60)


def test_the_socket_of_a_dead_process_is_removed(short_path: Path) -> None:
    path = short_path / "s"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    UnixAddress(path).clear_stale()
    assert not path.exists()


def test_the_socket_of_a_living_process_is_left(short_path: Path) -> None:
    path = short_path / "s"
    with socket.socket(socket.AF_UNIX) as living:
        living.bind(str(path))
        living.listen()
        with pytest.raises(AddressInUse):
            UnixAddress(path).clear_stale()
    assert path.exists()


def test_a_file_in_the_place_of_a_socket_is_left(short_path: Path) -> None:
    path = short_path / "s"
    path.write_text("precious")
    with pytest.raises(AddressInUse):
        UnixAddress(path).clear_stale()
    assert path.read_text() == "precious"


def test_where_nothing_is_nothing_is_cleared(short_path: Path) -> None:
    UnixAddress(short_path / "s").clear_stale()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_port_at_which_another_process_listens_is_refused(host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as living:
        address = TcpAddress(host, living.getsockname()[1])
        with pytest.raises(AddressInUse):
            address.clear_stale()
    address.clear_stale()
    TcpAddress(host, 0).clear_stale()
