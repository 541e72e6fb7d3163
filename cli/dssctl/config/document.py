"""The configuration file: where it is, and what it contains.

::

    context = "prod"              # the one in use
    time = "iso"                  # any key of `dssctl config show`

    [contexts.prod]
    endpoint = "dss://dss.example:7233"
    colour = "red"                # of `dssctl contexts prompt`
    read_only = true              # commands that change something are refused
    protected = true              # they ask for a reason and for a name
    default_output = "wide"
    spark_master = "spark://head:7077"
    token_file = "~/.config/dssctl/prod.token"
    tls_ca = "~/.config/dssctl/prod-ca.pem"    # tls_cert and tls_key too

    [defaults."groups ls"]
    sort = "lag"

    [aliases]
    slow = "groups ls --filter lag>1000 --sort lag"

Invariant: a file with any other contents is refused, with the place and what may be meant: a
misspelt key must not silently count as missing.
"""

import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TypeVar, cast

from dss_core.default_paths import expanded
from dss_core.errors import DssError, IllegalConfig
from dssctl.config.addresses import settled_file
from dssctl.config.keys import KEYS, did_you_mean, put, spelt, truth
from dssctl.limits import CONFIG_BYTES_MAX
from dssctl.settings import Settings

FILE_VARIABLE = "DSSCTL_CONFIG"
PREVIOUS = "previous_context"
"""The context that was in use before, for `contexts previous`."""
CONTEXT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
COLOURS = ("red", "green", "yellow", "blue", "magenta", "cyan", "white")

Table = Mapping[str, object]
Value = TypeVar("Value")


class Context(NamedTuple):
    """A named target."""

    name: str
    endpoint: str = ""
    colour: str = ""
    read_only: bool = False
    protected: bool = False
    default_output: str = ""
    spark_master: str = ""
    token_file: str = ""
    tls_ca: str = ""
    tls_cert: str = ""
    tls_key: str = ""


class Configuration(NamedTuple):
    """The contents of the file."""

    path: Path
    values: Mapping[str, str] = MappingProxyType({})
    """By the name of the key."""
    previous: str = ""
    contexts: Mapping[str, Context] = MappingProxyType({})
    defaults: Mapping[str, Mapping[str, str]] = MappingProxyType({})
    """Defaults of single commands, by their names: `groups ls`."""
    aliases: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    """What aliases stand for, word by word."""


def config_path() -> Path:
    """The path of the file, whether it exists or not.

    Raises:
        IllegalConfig: there is no home directory.
    """
    given = os.environ.get(FILE_VARIABLE)
    if given:
        return expanded(Path(given))
    try:
        return _config_home() / "dssctl" / "config.toml"
    except RuntimeError as homeless:
        raise IllegalConfig(source="file", reason=homeless) from homeless


def _config_home() -> Path:
    if sys.platform != "linux":
        from platformdirs import user_config_path

        return user_config_path()
    # The same path as platformdirs gives on Linux, without its 10 ms before each command.
    stated = os.environ.get("XDG_CONFIG_HOME", "").strip()
    return Path(stated) if stated.startswith("/") else Path.home() / ".config"


def read_configuration(path: Path) -> Configuration:
    """The contents of the file; nothing if there is none.

    Raises:
        IllegalConfig: it cannot be read, or contains something that no configuration has.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(CONFIG_BYTES_MAX + 1)
    except (FileNotFoundError, NotADirectoryError):
        return Configuration(path)
    except OSError as failed:
        raise IllegalConfig(source=path, reason=failed.strerror) from failed
    return configuration_of(path, raw)


def configuration_of(path: Path, raw: bytes) -> Configuration:
    """The configuration in these bytes.

    Raises:
        IllegalConfig: they contain something that no configuration has.
    """
    if not raw.strip():
        return Configuration(path)
    if len(raw) > CONFIG_BYTES_MAX:
        reason = f"it is longer than {CONFIG_BYTES_MAX} bytes"
        raise IllegalConfig(source=path, reason=reason)
    import tomllib  # Only if there is something to read

    try:
        return _configuration(path, tomllib.loads(raw.decode()))
    except (ValueError, DssError) as problem:
        raise IllegalConfig(source=path, reason=str(problem).rstrip(".")) from problem


def _configuration(path: Path, document: Table) -> Configuration:
    contexts = _table(document, "contexts")
    defaults = _table(document, "defaults")
    general = {
        name: value
        for name, value in document.items()
        if name not in {"contexts", "defaults", "aliases"}
    }
    previous = _text(general.pop(PREVIOUS, ""), PREVIOUS)
    values = _values(general, "", lambda name: not KEYS[name].of_lists)
    read = {name: _context(name, _table(contexts, name, "contexts.")) for name in contexts}
    return Configuration(
        path=path,
        values=values,
        previous=previous,
        contexts=read,
        defaults={
            name: _of_command(name, _table(defaults, name, "defaults.")) for name in defaults
        },
        aliases={name: _words(name, text) for name, text in _table(document, "aliases").items()},
    )


def _words(name: str, text: object) -> tuple[str, ...]:
    """The words that an alias stands for."""
    import shlex

    where = f"aliases.{name}"
    if not CONTEXT_NAME.fullmatch(name):
        raise ValueError(f"{where}: '{name}' is no word: letters, digits, '.', '_' and '-'.")
    words = _try(where, lambda: tuple(shlex.split(_text(text, where))))
    if not words:
        raise ValueError(f"{where} stands for nothing.")
    return words


def _of_command(name: str, table: Table) -> Mapping[str, str]:
    where = f'defaults."{name}".'
    return _values(table, where, lambda key: key not in {"context", "endpoint", "read_only"})


def _values(table: Table, where: str, allowed: Callable[[str], bool]) -> dict[str, str]:
    """Keys and their values, each checked."""
    texts: dict[str, str] = {}
    for name, value in _spelt(table, where).items():
        possible = [key for key in KEYS if allowed(key)]
        if name not in possible:
            near = did_you_mean(name, possible)
            raise ValueError(f"there is no key {where}{name}.{near}")
        texts[name] = _text(value, where + name)
        _try(where + name, lambda name=name: put(Settings(), name, texts[name]))  # type: ignore[misc]
    return texts


def _spelt(table: Table, where: str) -> Table:
    """The table with its keys as they are spelt here."""
    read: dict[str, object] = {}
    for name, value in table.items():
        if spelt(name) in read:
            raise ValueError(f"{where}{spelt(name)} is there twice, with - and with _.")
        read[spelt(name)] = value
    return read


def _context(name: str, table: Table) -> Context:
    where = f"contexts.{name}"
    require_context_name(name)
    table = _spelt(table, f"{where}.")
    for given in table:
        if given not in CONTEXT_FIELDS:
            near = did_you_mean(given, list(CONTEXT_FIELDS))
            raise ValueError(f"there is no key {where}.{given}.{near}")
    texts = {each: _text(value, f"{where}.{each}") for each, value in table.items()}
    return _try(where, lambda: context_of(name, texts))


def context_of(name: str, texts: Mapping[str, str]) -> Context:
    """A context from the text of its fields.

    Raises:
        ValueError: a value does not fit its field.
    """
    return Context(name, **{each: CONTEXT_FIELDS[each](text) for each, text in texts.items()})  # type: ignore[arg-type]


def require_context_name(name: str) -> None:
    """Make sure that a context can have this name.

    Raises:
        ValueError: it cannot.
    """
    if not CONTEXT_NAME.fullmatch(name):
        raise ValueError(f"'{name}' is no name of a context: letters, digits, '.', '_' and '-'.")


def _colour_of(text: str) -> str:
    if text and text not in COLOURS:
        raise ValueError(f"'{text}' is none of {', '.join(COLOURS)}.")
    return text


def _output_of(text: str) -> str:
    if text:
        put(Settings(), "output", text)
    return text


CONTEXT_FIELDS: dict[str, Callable[[str], str | bool]] = {
    "endpoint": str,
    "colour": _colour_of,
    "read_only": truth,
    "protected": truth,
    "default_output": _output_of,
    "spark_master": str,
    "token_file": settled_file,
    "tls_ca": settled_file,
    "tls_cert": settled_file,
    "tls_key": settled_file,
}


def _try(where: str, read: Callable[[], Value]) -> Value:
    try:
        return read()
    except (ValueError, DssError) as problem:
        raise ValueError(f"{where}: {problem}") from problem


def _table(document: Table, name: str, where: str = "") -> Table:
    value = document.get(name, {})
    if not isinstance(value, dict):
        raise ValueError(f"{where}{name} is no table.")  # noqa: TRY004 - of a document
    return cast("Table", value)


def _text(value: object, where: str) -> str:
    """A value of TOML as a flag has it."""
    match value:
        case bool():
            return "yes" if value else "no"
        case int() | float():
            return f"{value}"
        case str():
            return value
        case _:
            raise ValueError(f"{where} is neither text nor number nor truth.")
