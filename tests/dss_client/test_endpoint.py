from pathlib import Path

import pytest

from dss_client._endpoint import ENDPOINT_VARIABLE, resolve
from dss_core.default_paths import default_socket
from dss_core.errors import IllegalArgument, SocketPathTooLong
from dss_core.limits import UNIX_SOCKET_PATH_BYTES_MAX


def test_an_argument_goes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENDPOINT_VARIABLE, "host:1")
    assert resolve("unix:/run/d.sock").target == "unix:/run/d.sock"
    assert resolve(None).target == "host:1"


def test_the_default_is_the_socket_in_the_state_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENDPOINT_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert default_socket() == Path("/state/dssd/dssd.sock")
    assert resolve(None).target == "unix:/state/dssd/dssd.sock"


def test_a_relative_socket_path_is_made_absolute(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir("/tmp")
    assert resolve("unix:d.sock").target == "unix:/tmp/d.sock"


def test_the_longest_socket_path_is_accepted_and_one_byte_more_is_not() -> None:
    longest = "/" + "x" * (UNIX_SOCKET_PATH_BYTES_MAX - 1)
    assert resolve(f"unix:{longest}").target == f"unix:{longest}"
    with pytest.raises(SocketPathTooLong):
        resolve(f"unix:{longest}x")


@pytest.mark.parametrize("text", ["host", ":1", "host:", "host:port", "host:70000", "unix:"])
def test_other_forms_are_refused(text: str) -> None:
    with pytest.raises(IllegalArgument):
        resolve(text)


def test_an_ipv6_address_is_accepted() -> None:
    assert resolve("[::1]:7400").target == "[::1]:7400"


def test_several_endpoints_of_one_daemon_are_ways_to_it() -> None:
    several = "dss://a:1, unix:/run/d,e.sock,[::1]:2"
    for given in (several, ["dss://a:1", "unix:/run/d,e.sock", "[::1]:2"]):
        ways = resolve(given).ways
        assert [each.target for each in ways] == ["a:1", "unix:/run/d,e.sock", "[::1]:2"]
        assert [each.tls for each in ways] == [True, False, False]
    assert resolve(several).text == several


@pytest.mark.parametrize("text", ["a:1,", "a:1,,b:2", "a:1,b", ",".join(["a:1"] * 9)])
def test_a_list_with_what_is_no_endpoint_is_refused(text: str) -> None:
    with pytest.raises(IllegalArgument):
        resolve(text)
