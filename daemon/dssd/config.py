"""The configuration of a daemon: the command line wins over the file, the file over the defaults.

Invariant: a `Config` that exists is valid. No other part of the daemon reads the file.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from dss_core.default_paths import SOCKET_NAME, default_data_dir, expanded
from dss_core.errors import IllegalConfig
from dssd.addresses import Address, Clients, TcpAddress, parse_address, unix_address
from dssd.limits import CONFIG_BYTES_MAX
from dssd.log_lines import LogFormat

LISTEN_ADDRESSES_MAX = 16
"""Listening addresses of one daemon."""


TLS_KEYS = ("tls_cert", "tls_key", "tls_client_ca")
FILE_KEYS = ("data_dir", "listen", "metrics", "log_format", "reflection", "backup", *TLS_KEYS)
BACKUP_KEYS = ("directory", "keep", "hook")

BACKUPS_KEPT = 7
"""A week of daily backups."""

BACKUPS_KEPT_MAX = 10_000
"""More manifests than an operator would read."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Where the daemon's certificate is, in PEM. They are read again when they change."""

    cert: Path
    """The certificate, then the intermediate certificates up to the authority."""
    key: Path
    client_ca: Path | None = None
    """The authorities whose certificates of clients count."""


@dataclass(frozen=True, slots=True)
class BackupConfig:
    """Where the task ``backup`` writes: from the file alone, never from a call."""

    directory: Path
    keep: int = BACKUPS_KEPT
    hook: Path | None = None
    """A program that is told of each backup, to ship it elsewhere."""


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
    tls: TlsFiles | None = None
    backup: BackupConfig | None = None


def configure(
    *,
    data_dir: Path | None,
    listen: Sequence[str],
    file: Path | None,
    metrics: str | None = None,
    log_format: str | None = None,
    reflection: bool = False,
    tls: Mapping[str, Path | None] = MappingProxyType({}),
) -> Config:
    """Combine the sources: the file fills in what the command line leaves open.

    Of TLS, the keys of the file name what the command line gave.

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
        data_dir=expanded(chosen).absolute(),
        listen=addresses or (unix_address(chosen / SOCKET_NAME),),
        metrics=_metrics_address(metrics or _text(file, stated, "metrics")),
        reflection=reflection or _flag(file, stated, "reflection"),
        log_format=_log_format(log_format or _text(file, stated, "log_format")),
        tls=_tls_files(file, stated, tls, addresses),
        backup=_backup(file, stated),
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


def _path(file: Path | None, stated: Mapping[str, object], key: str = "data_dir") -> Path | None:
    value = stated.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or not value:
        raise IllegalConfig(source=file, reason=f"{key} must be a path")
    return Path(value)


def _tls_files(
    file: Path | None,
    stated: Mapping[str, object],
    given: Mapping[str, Path | None],
    addresses: Sequence[Address],
) -> TlsFiles | None:
    """The files of the certificate, where a listener needs one.

    Raises:
        IllegalConfig: one is missing, or is given for nothing.
    """
    said = {key: given.get(key) or _path(file, stated, key) for key in TLS_KEYS}
    cert, key, client_ca = map(_settled, said.values())
    policies = [each.policy for each in addresses]
    wants_ca = any(each.clients is Clients.CERTS for each in policies)
    if not any(each.tls for each in policies):
        given_for_nothing = next((name for name, path in said.items() if path is not None), None)
        if given_for_nothing is None:
            return None
        reason = "no listener has TLS: write --listen HOST:PORT,tls,clients=tokens"
        raise IllegalConfig(source=given_for_nothing, reason=reason)
    if cert is None or key is None:
        raise IllegalConfig(source="tls", reason="give both --tls-cert and --tls-key")
    if wants_ca and client_ca is None:
        raise IllegalConfig(source="clients=certs", reason="give --tls-client-ca too")
    return TlsFiles(cert, key, client_ca)


def _backup(file: Path | None, stated: Mapping[str, object]) -> BackupConfig | None:
    match stated.get("backup"):
        case None:
            return None
        case {"directory": str(directory), **rest} if directory and set(rest) <= set(BACKUP_KEYS):
            keep, hook = rest.get("keep", BACKUPS_KEPT), rest.get("hook", "")
            if not isinstance(keep, int) or not 1 <= keep <= BACKUPS_KEPT_MAX:
                reason = f"keep is how many backups stay, 1 to {BACKUPS_KEPT_MAX:,}"
                raise IllegalConfig(source=f"{file}, [backup]", reason=reason)
            if not isinstance(hook, str):
                raise IllegalConfig(source=f"{file}, [backup]", reason="hook must be a path")
            where = expanded(Path(directory)).absolute()
            return BackupConfig(where, keep, _settled(Path(hook)) if hook else None)
        case _:
            reason = f"it is a table with directory; known are {', '.join(BACKUP_KEYS)}"
            raise IllegalConfig(source=f"{file}, [backup]", reason=reason)


@dataclass(frozen=True, slots=True)
class StatedPlaces:
    """The paths in a daemon's file that it writes to, unresolved."""

    data_dir: Path | None = None
    backups: Path | None = None


def places_in(file: Path) -> StatedPlaces:
    """Read the paths in a file, which must be a valid configuration.

    Raises:
        IllegalConfig, SocketPathTooLong: it would not.
    """
    configure(data_dir=None, listen=(), file=file)
    stated = _read_file(file)
    match stated.get("backup"):
        case {"directory": str(directory)}:
            return StatedPlaces(_path(file, stated), Path(directory))
        case _:
            return StatedPlaces(_path(file, stated))


def _settled(path: Path | None) -> Path | None:
    return None if path is None else expanded(path).absolute()


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
    listed: list[object] = value if isinstance(value, list) else [value]
    return tuple(_address(file, each) for each in listed)


def _address(file: Path | None, stated: object) -> str:
    """An address of the file as the command line has it: a text, or a table."""
    match stated:
        case str():
            return stated
        case {"address": str(address), **rules} if all(map(_is_rule, rules.items())):
            said = (
                f"{name}" if value is True else f"{name}={value}" for name, value in rules.items()
            )
            return ",".join([address, *said])
        case _:
            reason = (
                "listen must be an address or a list of them; an address is a text, or a table "
                'such as { address = "0.0.0.0:7233", tls = true, clients = "tokens" }'
            )
            raise IllegalConfig(source=file, reason=reason)


def _is_rule(rule: tuple[object, object]) -> bool:
    name, value = rule
    return value is True if name == "tls" else isinstance(value, str)
