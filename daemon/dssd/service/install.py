"""Writes the unit where systemd finds it.

Invariant: a unit that somebody changed is not overwritten unasked, and a unit is there whole or not
at all. Nothing is started or enabled: what is to be typed next is said.
"""

import os
import pwd
import sys
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_config_path

from dss_core.errors import IllegalConfig
from dssd.service.unit import NAME, STATE_DIRECTORY, SystemPart, unit

_SYSTEM_UNITS = Path("/etc/systemd/system")
_SYSTEM_STATE = Path("/var/lib")


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
        IllegalConfig: a path cannot stand in a unit.
    """
    data_dir = _absolute(wanted.data_dir)
    kept_at = data_dir
    if wanted.of_system and kept_at is None:
        kept_at = str(_SYSTEM_STATE / STATE_DIRECTORY)
    command = [sys.executable, "-m", "dssd", "serve"]
    if kept_at is not None:
        command += ["--data-dir", kept_at]
    config = _absolute(wanted.config)
    if config is not None:
        command += ["--config", config]
    return unit(command, SystemPart(wanted.run_as, data_dir) if wanted.of_system else None)


def install(wanted: UnitRequest, *, force: bool) -> str:
    """Write the unit; returns what to do next.

    Raises:
        IllegalConfig: the unit was changed, its user is missing, or it cannot be written.
    """
    if wanted.of_system:
        _check_user(wanted.run_as)
    text = text_of(wanted)
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
    manager = "systemctl" if wanted.of_system else "systemctl --user"
    after = "" if wanted.of_system else "loginctl enable-linger  # it runs while you are away\n"
    return f"{path}\n{manager} daemon-reload\n{manager} enable --now {NAME}\n{after}"


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
    text = os.path.abspath(path.expanduser())  # noqa: PTH100 - a link stays as it is named
    if not text.isprintable():
        raise IllegalConfig(source=ascii(text), reason="a unit cannot have that path")
    return text
