"""Writes the unit where systemd finds it.

Invariant: a changed unit is not overwritten without --force, and a unit is written completely or
not at all. Nothing is started or enabled: the command prints what to type next. A system service
may write where the daemon's file says, and nowhere else.
"""

import os
import pwd
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_config_path

import dssd
from dss_core.default_paths import expanded
from dss_core.errors import IllegalConfig
from dssd.config import StatedPlaces, places_in
from dssd.service.readable import Reader
from dssd.service.unit import NAME, STATE_DIRECTORY, SystemPart, unit

_SYSTEM_UNITS = Path("/etc/systemd/system")
_SYSTEM_STATE = Path("/var/lib")

_READABLE = "install DSS where every user may read it: sudo pipx install --global PATH_OF_ITS_WHEEL"


@dataclass(frozen=True, slots=True)
class UnitRequest:
    """What kind of service."""

    of_system: bool
    run_as: str
    """Of a service of the system: its user."""
    data_dir: Path | None
    config: Path | None


def text_of(wanted: UnitRequest) -> str:
    """The unit.

    Raises:
        IllegalConfig: a path cannot stand in a unit, or the daemon's file cannot be read.
    """
    data_dir, config = _absolute(wanted.data_dir), _absolute(wanted.config)
    told = StatedPlaces() if wanted.config is None else places_in(wanted.config)
    command = [sys.executable, "-m", "dssd", "serve"]
    if data_dir is not None:
        command += ["--data-dir", data_dir]
    elif wanted.of_system and told.data_dir is None:
        command += ["--data-dir", str(_SYSTEM_STATE / STATE_DIRECTORY)]
    if config is not None:
        command += ["--config", config]
    return unit(command, _system_part(wanted, told) if wanted.of_system else None)


def _system_part(wanted: UnitRequest, told: StatedPlaces) -> SystemPart:
    data_dir = wanted.data_dir or _from_root(wanted.config, "data_dir", told.data_dir)
    backups = _from_root(wanted.config, "directory of [backup]", told.backups)
    if data_dir is not None and data_dir.is_relative_to(_SYSTEM_STATE / STATE_DIRECTORY):
        data_dir = None
    return SystemPart(wanted.run_as, _absolute(data_dir), _absolute(backups))


def _from_root(file: Path | None, what: str, path: Path | None) -> Path | None:
    if path is not None and not path.is_absolute():
        reason = f"{what} is {str(path)!a}, and a service has no directory to begin from: /…"
        raise IllegalConfig(source=file, reason=reason)
    return path


def printed(wanted: UnitRequest) -> str:
    """The unit as text; stderr gets the reasons why it would not start here.

    Raises:
        IllegalConfig: as `text_of`.
    """
    if trouble := _trouble_of(wanted):
        sys.stderr.write(f"note: {trouble}; {_READABLE}\n")
    return text_of(wanted)


def _trouble_of(wanted: UnitRequest) -> str:
    """Why a service of the machine would not start as its user; empty where it may."""
    if not wanted.of_system:
        return ""
    reader = Reader.named(wanted.run_as)
    for path in (Path(sys.executable), Path(dssd.__file__), wanted.config):
        stopped_at = None if path is None else reader.stopped_at(path)
        if stopped_at is not None:
            way = "" if stopped_at == path else f", which is on the way to {path}"
            return f"the user {wanted.run_as} may not read {stopped_at}{way}"
    return ""


def install(wanted: UnitRequest, *, force: bool) -> str:
    """Write the unit; returns what to do next.

    Raises:
        IllegalConfig: the unit was changed, its user is missing or may not read what it runs, or
            it cannot be written.
    """
    if wanted.of_system:
        _check_user(wanted.run_as)
    text = text_of(wanted)
    trouble = _trouble_of(wanted)
    if trouble and not force:
        raise IllegalConfig(source=f"--run-as {wanted.run_as}", reason=f"{trouble}; {_READABLE}")
    path = _path(of_system=wanted.of_system)
    try:
        if not force and path.exists() and path.read_text() != text:
            reason = "it is there, and differs; see it with --print, replace it with --force"
            raise IllegalConfig(source=path, reason=reason)
        path.parent.mkdir(parents=True, exist_ok=True)
        written = path.with_suffix(".new")
        written.write_text(text)
        written.chmod(0o644)
        written.replace(path)
    except OSError as error:
        raise IllegalConfig(source=path, reason=error.strerror) from error
    return "".join(f"{line}\n" for line in (str(path), *_next_steps(wanted)))


def _next_steps(wanted: UnitRequest) -> Iterator[str]:
    manager = "systemctl" if wanted.of_system else "systemctl --user"
    backups = None if wanted.config is None else places_in(wanted.config).backups
    if wanted.of_system and backups is not None and not backups.exists():
        yield f"install -d -o {wanted.run_as} -m 700 {shlex.quote(str(backups))}"
    yield f"{manager} daemon-reload"
    yield f"{manager} enable --now {NAME}"
    if not wanted.of_system:
        yield "loginctl enable-linger  # it runs while you are away"


def _path(*, of_system: bool) -> Path:
    if of_system:
        return _SYSTEM_UNITS / NAME
    return user_config_path("systemd", appauthor=False) / "user" / NAME


def _check_user(name: str) -> None:
    try:
        pwd.getpwnam(name)
    except KeyError:
        reason = f"there is no such user; make it with: useradd --system {name}"
        raise IllegalConfig(source=f"--run-as {name}", reason=reason) from None


def _absolute(path: Path | None) -> str | None:
    if path is None:
        return None
    text = os.path.abspath(expanded(path))  # noqa: PTH100 - a link stays as it is named
    if not text.isprintable():
        raise IllegalConfig(source=ascii(text), reason="a unit cannot have that path")
    return text
