"""The unit of systemd for a daemon.

Invariant: no directive keeps the daemon from starting jobs on a JVM, which compiles code as it
runs, so there is no MemoryDenyWriteExecute; a job in a scope of its own outlives a restart, and one
that is not ends with the daemon (`KillMode=mixed`). Sandbox options that a user's service manager
may not support are only in the system's unit.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dss_core.errors import ExitCode

START_S_MAX = 600
"""A start reads what the last daemon wrote since its last mark: seconds, minutes on a slow disk
after a kill."""

WATCHDOG_S = 60
"""A loop or a writer without progress for so long is stuck, not busy: the slowest sync ever
observed took half of it."""

STOP_S_MAX = 20
"""A stop ends by itself within 12 s."""

STARTS_MAX = 10
STARTS_WITHIN_S = 300
"""A daemon that fails so often is not started again: restarts do not help."""

RESTART_AFTER_S = 1
"""Clients come back within seconds; less would spin where a start fails at once."""

DESCRIPTORS_MAX = 1 << 20
"""Connections, files of the log: the system's own bound, where that is lower."""


NAME = "dssd.service"
STATE_DIRECTORY = "dssd"

_NOT_AGAIN = f"{int(ExitCode.USAGE)} {int(ExitCode.IO_ERROR)} {int(ExitCode.CONFIG)}"
"""Exit codes without a restart: a wrong command line or configuration fails again, and after a
failed sync a person must look first, because the state of the disk is unknown."""
"""Under /var/lib."""

_SANDBOX = """\
NoNewPrivileges=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM
"""

_SANDBOX_OF_SYSTEM = """\
CapabilityBoundingSet=
PrivateDevices=yes
PrivateTmp=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHome=read-only
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectSystem=strict
"""


@dataclass(frozen=True, slots=True)
class SystemPart:
    """What the system's manager needs to know beside."""

    user: str
    data_dir: str | None
    """None: in the state directory of the unit."""
    backups: str | None = None
    """Where the task ``backup`` writes."""


def unit(command: Sequence[str], system: SystemPart | None) -> str:
    """The unit that runs the command: of the system, or of a user."""
    own = "" if system is None else _of_system(system)
    sandbox = _SANDBOX if system is None else _SANDBOX + _SANDBOX_OF_SYSTEM
    wanted_by = "default.target" if system is None else "multi-user.target"
    return f"""\
[Unit]
Description=DSS: durable shared subscriptions
StartLimitIntervalSec={STARTS_WITHIN_S}
StartLimitBurst={STARTS_MAX}

[Service]
Type=notify
NotifyAccess=main
ExecStart={" ".join(map(_word, command))}
Restart=on-failure
RestartSec={RESTART_AFTER_S}
RestartPreventExitStatus={_NOT_AGAIN}
TimeoutStartSec={START_S_MAX}
TimeoutStopSec={STOP_S_MAX}
WatchdogSec={WATCHDOG_S}
KillMode=mixed
OOMPolicy=continue
LimitNOFILE={DESCRIPTORS_MAX}
UMask=0077
{own}{sandbox}
[Install]
WantedBy={wanted_by}
"""


def _of_system(system: SystemPart) -> str:
    if system.data_dir is None:
        place = f"StateDirectory={STATE_DIRECTORY}\nStateDirectoryMode=0700"
    else:
        place = f"ReadWritePaths={_word(system.data_dir)}"
    if system.backups is not None:
        # A disk of backups that is not there must not keep the daemon from starting.
        place += f"\nReadWritePaths={_word(f'-{system.backups}')}"
    return f"User={system.user}\n{place}\n"


def _word(text: str) -> str:
    """One word as units have it: neither specifiers nor variables are put in."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return plain if plain.isascii() and not set(plain) & set(" \t';\\\"") else f'"{plain}"'
