"""The status of the daemon at one moment, for operators.

Invariant: frozen values, whose fields are those of the messages in `daemon.proto`.
"""

from dataclasses import dataclass
from typing import NamedTuple

from dss_core.answers import Held, UnreadLoss


@dataclass(slots=True)
class PeerHeld:
    """What one peer holds."""

    peer: str
    connections: int = 0
    calls: int = 0
    sessions: int = 0
    delivery_bytes: int = 0


class Quarantined(NamedTuple):
    """A file that was set aside."""

    file: str
    reason: str


@dataclass(frozen=True, slots=True)
class DaemonFacts:
    """How the daemon stands."""

    version: str
    pid: int
    started_at_ms: int
    data_dir: str
    listening: tuple[str, ...]
    state: str
    """serving, read-only or stopping."""
    state_reason: str
    topics: int
    streams: int
    groups: int
    sessions: int
    sessions_waiting: int
    log_bytes: int
    disk_free_bytes: int
    sqlite_version: str
    boot_id: str
    incarnation: str
    features: tuple[str, ...]
    """What it supports beyond the first version."""
    quarantined: tuple[Quarantined, ...]
    unread_records_gone: int
    """Records that retention took before a group had acknowledged them, since the start."""
    unread_losses: tuple[UnreadLoss, ...]
    """By topic and group, the latest last."""
    errors_in_a_day: int
    """Events of severity error in the last 24 hours."""
    operators_socket: str
    """Empty where there is none."""
    held: Held
    peers: tuple[PeerHeld, ...]
    """The peers that hold most of it."""
    now_us: int
    """By the wall clock."""
    disk_size_bytes: int
    open_files: int
    open_files_max: int
    sessions_max: int
    producers: int
    """Remembered producers, counted once for each partition."""
    producers_max: int
    before: str
    """How the previous daemon ended."""
    before_ended_at_ms: int
    before_reason: str
    backup_at_ms: int
    """When the newest known backup was taken; 0: none is known."""
    principals_suspended: int
    """Principals that a restore suspended."""
    restores: int
    """How often its data was restored from a backup."""
    certificate: str
    """The certificate file that TLS is served with; empty where there is no TLS."""
    certificate_ends_ms: int
    """By the wall clock; 0 where there is no TLS."""
    certificate_problem: str
    """Why the present content of the file is not served."""
