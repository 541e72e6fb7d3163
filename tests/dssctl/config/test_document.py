"""What a configuration file may say."""

import os
import sys
from pathlib import Path

import pytest
from platformdirs import user_config_path

from dss_core.errors import IllegalConfig
from dssctl.config.document import config_path, configuration_of, read_configuration

PATH = Path("/etc/dssctl.toml")


def test_contexts_general_keys_and_defaults_of_commands_are_read() -> None:
    read = configuration_of(
        PATH,
        b"""
        context = "prod"
        timeout = 5
        headers = false

        [contexts.prod]
        endpoint = "dss.example:7070"
        read_only = true

        [defaults."groups ls"]
        sort = "lag"
        limit = 20
        """,
    )
    assert read.values == {"context": "prod", "timeout": "5", "headers": "no"}
    assert read.contexts["prod"].endpoint == "dss.example:7070"
    assert read.contexts["prod"].read_only
    assert not read.contexts["prod"].protected
    assert read.defaults == {"groups ls": {"sort": "lag", "limit": "20"}}


def test_a_key_is_spelt_as_its_flag_too() -> None:
    read = configuration_of(PATH, b"connect-wait = 3\n[contexts.prod]\nread-only = true")
    assert read.values == {"connect_wait": "3"}
    assert read.contexts["prod"].read_only


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("outptu = 'json'", "there is no key outptu. Did you mean output?"),
        ("sort = 'lag'", "there is no key sort"),
        ("output = 'xml'", "output: 'xml' is none of table"),
        ("timeout = 'soon'", "timeout: "),
        ("output = ['json']", "output is neither text nor number nor truth"),
        ("[contexts.prod]\nread-olny = true", "contexts.prod.read_olny. Did you mean read_only?"),
        ("connect-wait = 1\nconnect_wait = 2", "connect_wait is there twice, with - and with _"),
        ("[contexts.prod]\nread_only = 'perhaps'", "'perhaps' is neither yes nor no"),
        ("[contexts.prod]\ncolour = 'mauve'", "'mauve' is none of red"),
        ("[contexts.'a b']\n", "'a b' is no name of a context"),
        ("contexts = 7", "contexts is no table"),
        ("[defaults.'groups ls']\nsrot = 'lag'", 'defaults."groups ls".srot. Did you mean sort?'),
        ("[defaults.'groups ls']\ncontext = 'prod'", 'no key defaults."groups ls".context'),
        ("output = ", "Invalid value"),
        ("output = '\xff'", "codec can't decode"),
    ],
)
def test_what_is_no_configuration_is_refused_with_its_place(text: str, said: str) -> None:
    with pytest.raises(IllegalConfig) as refused:
        configuration_of(PATH, text.encode("latin-1"))
    assert said in refused.value.message
    assert str(PATH) in refused.value.message


def test_a_file_that_is_not_there_says_nothing(tmp_path: Path) -> None:
    assert read_configuration(tmp_path / "none.toml").values == {}


def test_a_file_that_may_not_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(IllegalConfig, match="Is a directory"):
        read_configuration(tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere platformdirs itself is asked")
@pytest.mark.parametrize("home", ["/elsewhere", "relative", "", None])
def test_the_file_is_where_platformdirs_has_it(
    home: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DSSCTL_CONFIG", raising=False)
    if home is None:
        monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    else:
        monkeypatch.setenv("XDG_CONFIG_HOME", home)
    expected = user_config_path() if home != "relative" else Path.home() / ".config"
    assert config_path() == expected / "dssctl" / "config.toml"


def test_a_variable_names_another_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSSCTL_CONFIG", os.devnull)
    assert config_path() == Path(os.devnull)
