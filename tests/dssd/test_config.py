from pathlib import Path

import pytest

from dss_client._endpoint import ENDPOINT_VARIABLE, resolve
from dss_core.errors import IllegalConfig, SocketPathTooLong
from dssd.addresses import Clients, Policy, TcpAddress, UnixAddress
from dssd.config import BACKUPS_KEPT, BackupConfig, Config, TlsFiles, configure


def configured(
    file: Path | None = None, data_dir: Path | None = None, listen: tuple[str, ...] = ()
) -> Config:
    return configure(data_dir=data_dir, listen=listen, file=file)


@pytest.mark.parametrize("state", ["/state", "", "relative/state", None])
def test_daemon_and_client_agree_where_nothing_is_said(
    state: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.delenv(ENDPOINT_VARIABLE, raising=False)
    if state is None:
        monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    else:
        monkeypatch.setenv("XDG_STATE_HOME", state)
    config = configured()
    usual = Path("/state/dssd" if state == "/state" else "/home/ada/.local/state/dssd")
    assert config.data_dir == usual
    (address,) = config.listen
    assert resolve(None).target == address.target


def test_without_a_home_directory_there_is_no_default(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless(*_: object, **__: object) -> Path:
        raise RuntimeError("could not determine the home directory")

    monkeypatch.setattr("platformdirs.user_state_path", homeless)
    with pytest.raises(IllegalConfig, match="home directory"):
        configured()


def test_a_daemon_listens_in_its_data_directory_by_default() -> None:
    config = configured(data_dir=Path("/data"))
    assert config.listen == (UnixAddress(Path("/data/dssd.sock")),)


def test_the_command_line_goes_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "dssd.toml"
    file.write_text('data_dir = "/from/file"\nlisten = ["127.0.0.1:1", "unix:/from/file.sock"]\n')
    assert configured(file) == Config(
        Path("/from/file"), (TcpAddress("127.0.0.1", 1), UnixAddress(Path("/from/file.sock")))
    )
    assert configured(file, data_dir=Path("/line"), listen=("127.0.0.1:2",)) == Config(
        Path("/line"), (TcpAddress("127.0.0.1", 2),)
    )


TLS = 'tls_cert = "c.pem"\ntls_key = "k.pem"\n'


def test_an_address_of_the_file_may_be_a_table_beside_others(tmp_path: Path) -> None:
    file = tmp_path / "dssd.toml"
    table = '{ address = "0.0.0.0:1", tls = true, clients = "tokens" }'
    file.write_text(f'listen = ["127.0.0.1:2", {table}]\n{TLS}')
    config = configured(file)
    policy = Policy(tls=True, clients=Clients.TOKENS)
    assert config.listen == (TcpAddress("127.0.0.1", 2), TcpAddress("0.0.0.0", 1, policy))
    assert config.tls == TlsFiles(Path("c.pem").absolute(), Path("k.pem").absolute())


@pytest.mark.parametrize(
    "stated",
    [
        'listen = { tls = true, clients = "tokens" }\n' + TLS,
        'listen = { address = "0.0.0.0:1", tls = "yes", clients = "tokens" }\n' + TLS,
        'listen = { address = "0.0.0.0:1", tls = false, clients = "tokens" }\n' + TLS,
        'listen = { address = "0.0.0.0:1", tls = true, owner = "me" }\n' + TLS,
        'listen = { address = "0.0.0.0:1", tls = true, clients = "certs" }\n' + TLS,
        'listen = { address = "0.0.0.0:1", tls = true, clients = "tokens" }\ntls_cert = "c"',
        'listen = "127.0.0.1:1"\n' + TLS,
        "listen = [1]",
    ],
)
def test_what_is_no_listener_with_its_files_is_refused(tmp_path: Path, stated: str) -> None:
    file = tmp_path / "dssd.toml"
    file.write_text(stated)
    with pytest.raises(IllegalConfig):
        configured(file)


def test_one_address_may_stand_alone_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "dssd.toml"
    file.write_text('listen = "127.0.0.1:1"')
    assert configured(file, data_dir=Path("/d")).listen == (TcpAddress("127.0.0.1", 1),)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("datadir = '/x'", "unknown key datadir"),
        ("data_dir = 5", "data_dir must be a path"),
        ("listen = [5]", "listen must be an address"),
        ("listen = ['0.0.0.0:1']", "loopback"),
        ("listen = [", "is wrong"),
    ],
)
def test_a_wrong_file_says_what_is_wrong(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "dssd.toml"
    file.write_text(text)
    with pytest.raises(IllegalConfig, match=reason):
        configured(file)


def test_a_file_that_is_not_there_is_a_wrong_configuration(tmp_path: Path) -> None:
    with pytest.raises(IllegalConfig, match="No such file"):
        configured(tmp_path / "nowhere.toml")


def test_a_deep_data_directory_needs_another_socket() -> None:
    deep = Path("/" + "d" * 100)
    with pytest.raises(SocketPathTooLong):
        configured(data_dir=deep)
    assert configured(data_dir=deep, listen=("unix:/s",)).data_dir == deep


def test_the_addresses_are_bounded() -> None:
    with pytest.raises(IllegalConfig):
        configured(listen=("127.0.0.1:0",) * 17)


def test_reflection_and_the_format_of_the_log_may_stand_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "dssd.toml"
    file.write_text('log_format = "json"\nreflection = true\n')
    assert (configured(file).log_format, configured(file).reflection) == ("json", True)
    assert (configured().log_format, configured().reflection) == ("text", False)
    file.write_text('log_format = "xml"\n')
    with pytest.raises(IllegalConfig, match="write text or json"):
        configured(file)


def test_where_backups_go_stands_in_the_file_alone(tmp_path: Path) -> None:
    file = tmp_path / "dssd.toml"
    assert configured().backup is None
    file.write_text('[backup]\ndirectory = "/backups"\n')
    assert configured(file).backup == BackupConfig(Path("/backups"), BACKUPS_KEPT, None)
    file.write_text('[backup]\ndirectory = "/backups"\nkeep = 3\nhook = "/bin/ship"\n')
    assert configured(file).backup == BackupConfig(Path("/backups"), 3, Path("/bin/ship"))


@pytest.mark.parametrize(
    "said",
    [
        'backup = "/backups"',
        "[backup]\nkeep = 3",
        '[backup]\ndirectory = ""',
        '[backup]\ndirectory = "/b"\nkeep = 0',
        '[backup]\ndirectory = "/b"\nkeep = "3"',
        '[backup]\ndirectory = "/b"\nhook = 3',
        '[backup]\ndirectory = "/b"\nwhere = "x"',
    ],
)
def test_a_place_for_backups_that_cannot_be_is_refused(tmp_path: Path, said: str) -> None:
    file = tmp_path / "dssd.toml"
    file.write_text(f"{said}\n")
    with pytest.raises(IllegalConfig, match="backup"):
        configured(file)


def test_metrics_are_off_until_an_address_is_given(tmp_path: Path) -> None:
    assert configured().metrics is None
    file = tmp_path / "dssd.toml"
    file.write_text('metrics = "127.0.0.1:9464"\n')
    assert configured(file).metrics == TcpAddress("127.0.0.1", 9464)
    own = configure(data_dir=None, listen=(), file=file, metrics="[::1]:1")
    assert own.metrics == TcpAddress("::1", 1)


@pytest.mark.parametrize("address", ["unix:/run/m.sock", "0.0.0.0:9464", "9464"])
def test_an_address_for_metrics_that_is_no_loopback_port_is_refused(address: str) -> None:
    with pytest.raises(IllegalConfig, match=f"metrics {address}"):
        configure(data_dir=None, listen=(), file=None, metrics=address)
