"""Which files count for an endpoint, and where a token may go."""

from pathlib import Path

import pytest

from dss_client._credentials import TokenFile, credentials_of
from dss_client._endpoint import resolve
from dss_core.endpoints import CREDENTIAL_VARIABLES as VARIABLES
from dss_core.errors import IllegalArgument, IllegalConfig

REMOTE, PLAIN, LOOPBACK, LOCAL = "dss://h:1", "h:1", "127.0.0.1:1", "unix:/s"


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES.values():
        monkeypatch.delenv(variable, raising=False)


def token_file(folder: Path, text: str = "dss_one", mode: int = 0o600) -> Path:
    path = folder / "token"
    path.write_text(text)
    path.chmod(mode)
    return path


@pytest.mark.parametrize("endpoint", [REMOTE, LOOPBACK, "localhost:1", "[::1]:1", LOCAL])
def test_a_token_goes_where_nobody_else_reads_it(endpoint: str) -> None:
    given = credentials_of(resolve(endpoint), token_file="/t")
    assert given.token_file == Path("/t")


@pytest.mark.parametrize("endpoint", [PLAIN, "10.0.0.1:1", "127.0.0.1.example:1"])
def test_a_token_goes_nowhere_else(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(IllegalArgument, match="TLS"):
        credentials_of(resolve(endpoint), token_file="/t")
    monkeypatch.setenv("DSSCTL_TOKEN_FILE", "/t")
    assert credentials_of(resolve(endpoint)).token_file is None


def test_the_environment_fills_in_what_fits_to_the_endpoint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, variable in VARIABLES.items():
        monkeypatch.setenv(variable, f"/env/{name}")
    everything = credentials_of(resolve(REMOTE), ca="/own/ca")
    assert everything.ca == Path("/own/ca")
    assert everything.cert == Path("/env/cert")
    assert everything.token_file == Path("/env/token_file")
    loopback = credentials_of(resolve(LOOPBACK))
    assert (loopback.ca, loopback.token_file) == (None, Path("/env/token_file"))
    assert not any(credentials_of(resolve(LOCAL)))


@pytest.mark.parametrize("name", ["ca", "cert", "key"])
@pytest.mark.parametrize("endpoint", [LOOPBACK, LOCAL])
def test_what_is_for_tls_is_refused_without_it(endpoint: str, name: str) -> None:
    with pytest.raises(IllegalArgument, match="dss://"):
        credentials_of(resolve(endpoint), **{name: "/f"})


def test_a_certificate_and_its_key_go_together() -> None:
    with pytest.raises(IllegalArgument, match="go together"):
        credentials_of(resolve(REMOTE), cert="/f")


def test_an_endpoint_with_tls_is_a_host_and_a_port() -> None:
    assert resolve("dss://[::1]:7233")[:3] == ("[::1]:7233", "dss://[::1]:7233", True)
    for text in ("dss://h", "dss://h:1/x", "dss://", "https://h:1"):
        with pytest.raises(IllegalArgument, match="dss://HOST:PORT"):
            resolve(text)


def test_a_token_is_read_anew_when_its_file_changes(tmp_path: Path) -> None:
    path = token_file(tmp_path, "dss_one\n")
    file = TokenFile(path)
    assert file.token() == "dss_one"
    staged = token_file(tmp_path / "..", "dss_two", 0o600)
    staged.replace(path)
    assert file.token() == "dss_two"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_token_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(IllegalConfig, match="chmod 600"):
        TokenFile(token_file(tmp_path, mode=mode)).token()


@pytest.mark.parametrize("text", ["", "\n", "two\nlines", "x" * 513, "d\xf6s"])
def test_what_is_no_token_is_refused_and_not_repeated(tmp_path: Path, text: str) -> None:
    with pytest.raises(IllegalConfig) as refused:
        TokenFile(token_file(tmp_path, text)).token()
    assert not text.strip() or text not in str(refused.value)


def test_a_token_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(IllegalConfig, match="nothing is wrong: No such file"):
        TokenFile(tmp_path / "nothing").token()


def test_a_token_in_the_place_of_its_file_is_refused_and_not_repeated() -> None:
    token = "dss_" + "x" * 43
    with pytest.raises(IllegalArgument) as refused:
        credentials_of(resolve("dss://a.example:1"), token_file=token)
    assert token not in str(refused.value)
    assert token not in refused.value.hint_text
