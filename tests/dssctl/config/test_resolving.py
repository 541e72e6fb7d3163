"""Which origin of a value counts."""

from pathlib import Path

import pytest

from dss_core.errors import ContextNotFound, IllegalArgument
from dssctl.config import configure, put
from dssctl.settings import Format, Settings

FILE = """
context = "prod"
output = "yaml"

[contexts.prod]
endpoint = "prod:7070"
default_output = "csv"
protected = true

[contexts.plain]

[contexts.watch]
read_only = true

[defaults."groups ls"]
output = "wide"
sort = "lag"
"""


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(FILE)
    monkeypatch.setenv("DSSCTL_CONFIG", str(path))
    for variable in ("DSSCTL_ENDPOINT", "DSSCTL_CONNECT_WAIT"):
        monkeypatch.delenv(variable, raising=False)
    return path


def configured(command: str = "topics ls", **flags: str) -> Settings:
    settings = Settings()
    for key, text in flags.items():
        put(settings, key, text)
        settings.flags[key] = text
    configure(settings, command)
    return settings


def test_a_flag_counts_more_than_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSSCTL_OUTPUT", "json")
    assert configured(output="name").format is Format.NAME


def test_a_variable_counts_more_than_the_context(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSSCTL_OUTPUT", "json")
    assert configured().format is Format.JSON


def test_the_context_counts_more_than_the_file() -> None:
    settings = configured()
    assert settings.format is Format.CSV
    assert settings.endpoint == "prod:7070"


def test_what_is_for_a_command_counts_more_than_what_is_for_all() -> None:
    assert configured("groups ls", context="plain").format is Format.WIDE
    assert configured("groups ls", context="plain").listing.sort == "lag"
    assert configured("topics ls", context="plain").format is Format.YAML


def test_the_default_is_what_nobody_gave(file: Path) -> None:
    file.write_text("")
    assert configured().format is Format.TABLE


def test_an_empty_variable_gives_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSSCTL_OUTPUT", "")
    assert configured().format is Format.CSV


def test_another_context_may_be_named_or_none() -> None:
    settings = configured(context="watch")
    assert settings.context is not None
    assert settings.context.read_only == "watch"
    assert settings.endpoint is None
    assert configured(context="").context is None


def test_a_flag_lifts_what_a_context_forbids() -> None:
    settings = configured(context="watch", read_only="no")
    assert settings.context is not None
    assert not settings.context.read_only
    assert not settings.read_only


def guarded(settings: Settings) -> tuple[str, str]:
    assert settings.context is not None
    return settings.context.read_only, settings.context.protected


def test_the_guards_of_the_context_in_use_hold_for_another_endpoint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DSSCTL_ENDPOINT", "test:7070")
    settings = configured()
    assert settings.endpoint == "test:7070"
    assert guarded(settings) == ("", "prod")
    assert settings.context is not None
    assert settings.context.elsewhere.startswith("DSSCTL_ENDPOINT sends this to test:7070, not to")


def test_a_daemon_that_a_context_protects_is_protected_by_every_way_to_it(file: Path) -> None:
    settings = configured(context="watch", endpoint="PROD:7070")
    assert guarded(settings) == ("watch", "prod")
    file.write_text(FILE.replace('context = "prod"', ""))
    assert guarded(configured(endpoint="prod:7070")) == ("", "prod")
    assert configured(endpoint="prod:7071").context is None


def test_a_context_for_looking_beside_one_for_changes_forbids_nothing(file: Path) -> None:
    file.write_text(
        '[contexts.look]\nendpoint = "a:1"\nread_only = true\n[contexts.do]\nendpoint = "a:1"\n'
    )
    assert guarded(configured(endpoint="a:1")) == ("", "")
    assert guarded(configured(context="look", endpoint="b:1")) == ("look", "")


def test_no_context_leaves_all_guards() -> None:
    assert configured(context="", endpoint="prod:7070").context is None


def test_an_endpoint_that_is_that_of_the_context_is_told_of_to_nobody(file: Path) -> None:
    file.write_text('context = "a"\n[contexts.a]\nendpoint = "unix:/run/dss/s"\n')
    settings = configured(endpoint="unix:///run/dss/../dss/s")
    assert settings.context is not None
    assert not settings.context.elsewhere


def test_a_context_that_is_not_there_is_an_error_with_what_may_be_meant() -> None:
    with pytest.raises(ContextNotFound) as missing:
        configured(context="prd")
    assert missing.value.hint_text.startswith("Did you mean prod? List them:")


def test_a_variable_with_a_value_that_is_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSSCTL_TIME", "late")
    with pytest.raises(IllegalArgument, match="DSSCTL_TIME late is not allowed"):
        configured()
