"""The configuration of a daemon: the command line wins over the file, the file over the defaults.

Invariant: a `Config` that exists is valid. No other part of the daemon reads the file.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dss_core.default_paths import SOCKET_NAME, default_data_dir
from dss_core.errors import IllegalConfig
from dssd.addresses import Address, TcpAddress, parse_address, unix_address
from dssd.limits import CONFIG_BYTES_MAX
from dssd.log_lines import LogFormat

LISTEN_ADDRESSES_MAX = 16
"""Listening addresses of one daemon."""


FILE_KEYS = ("data_dir", "listen", "metrics", "log_format", "reflection")


@dataclass(frozen=True, slots=True)
class Config:
    """The configuration of a daemon."""

    data_dir: Path
    listen: tuple[Address, ...]
    metrics: TcpAddress | None = None
    """Where Prometheus is served; None: nowhere."""
    log_format: LogFormat = LogFormat.TEXT
    reflection: bool = False
    """Whether tools may ask what is served."""


def configure(
    *,
    data_dir: Path | None,
    listen: Sequence[str],
    file: Path | None,
    metrics: str | None = None,
    log_format: str | None = None,
    reflection: bool = False,
) -> Config:
    """Combine the sources: the file fills in what the command line leaves open.

    Raises:
        IllegalConfig: a value has another form or is out of bounds, or the file is unreadable.
        SocketPathTooLong: a unix socket cannot have that path.
    """
    stated = _read_file(file) if file is not None else {}
    chosen = data_dir or _path(file, stated) or default_data_dir()
    texts = tuple(listen) or _addresses(file, stated)
    if len(texts) > LISTEN_ADDRESSES_MAX:
        raise IllegalConfig(source="listen", reason=f"at most {LISTEN_ADDRESSES_MAX} addresses")
    addresses = tuple(parse_address(text) for text in texts)
    return Config(
        data_dir=chosen.expanduser().absolute(),
        listen=addresses or (unix_address(chosen / SOCKET_NAME),),
        metrics=_metrics_address(metrics or _text(file, stated, "metrics")),
        reflection=reflection or _flag(file, stated, "reflection"),
        log_format=_log_format(log_format or _text(file, stated, "log_format")),
    )


def _read_file(file: Path) -> dict[str, object]:
    try:
        with file.open("rb") as opened:
            stated = tomllib.loads(opened.read(CONFIG_BYTES_MAX).decode())
    except OSError as error:
        raise IllegalConfig(source=file, reason=error.strerror) from error
    except ValueError as error:  # broken TOML, or not UTF-8
        raise IllegalConfig(source=file, reason=error) from error
    unknown = sorted(set(stated) - set(FILE_KEYS))
    if unknown:
        reason = f"unknown key {unknown[0]}; known are {', '.join(FILE_KEYS)}"
        raise IllegalConfig(source=file, reason=reason)
    return stated


def _path(file: Path | None, stated: Mapping[str, object]) -> Path | None:
    value = stated.get("data_dir")
    if value is None:
        return None
    if not isinstance(value, str) or not value:
        raise IllegalConfig(source=file, reason="data_dir must be a path")
    return Path(value)


def _text(file: Path | None, stated: Mapping[str, object], key: str) -> str | None:
    value = stated.get(key)
    if value is not None and not isinstance(value, str):
        raise IllegalConfig(source=file, reason=f"{key} must be a text")
    return value or None


def _metrics_address(text: str | None) -> TcpAddress | None:
    if text is None:
        return None
    address = parse_address(text, "metrics")
    if not isinstance(address, TcpAddress):
        raise IllegalConfig(source=f"metrics {text}", reason="write HOST:PORT")
    return address


def _flag(file: Path | None, stated: Mapping[str, object], key: str) -> bool:
    value = stated.get(key, False)
    if not isinstance(value, bool):
        raise IllegalConfig(source=file, reason=f"{key} must be true or false")
    return value


def _log_format(text: str | None) -> LogFormat:
    if text is None:
        return LogFormat.TEXT
    try:
        return LogFormat(text)
    except ValueError:
        raise IllegalConfig(source=f"log_format {text}", reason="write text or json") from None


def _addresses(file: Path | None, stated: Mapping[str, object]) -> tuple[str, ...]:
    value = stated.get("listen", [])
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise IllegalConfig(source=file, reason="listen must be an address or a list of them")
    return tuple(texts)
