"""The daemon's own state, as it reports it.

Invariant: frozen values out; no wire message leaves this module.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dss_api.values import decoded
from dss_core.answers import Held, UnreadLoss

if TYPE_CHECKING:
    from dss_client._connection import Connection
    from dss_client.answers import Verdict


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A file that was set aside because it is damaged or unknown."""

    file: str
    reason: str


@dataclass(frozen=True, slots=True)
class PeerHeld:
    """The resources of a peer of the daemon: a process of its machine, or an address."""

    peer: str
    connections: int
    calls: int
    sessions: int
    delivery_bytes: int


@dataclass(frozen=True, slots=True)
class DaemonStatus:
    """How a daemon stands."""

    version: str
    pid: int
    started_at_ms: int
    data_dir: str
    listening: tuple[str, ...]
    state: str
    """``serving``, ``read-only`` or ``stopping``."""
    state_reason: str
    topics: int
    streams: int
    groups: int
    sessions: int
    """Connected."""
    sessions_waiting: int
    """Kept for clients that are away."""
    log_bytes: int
    disk_free_bytes: int
    sqlite_version: str
    boot_id: str
    quarantined: tuple[Quarantined, ...]
    unread_records_gone: int
    """Records that retention took before a group had acknowledged them, since its start."""
    unread_losses: tuple[UnreadLoss, ...]
    """Which, the latest last."""
    errors_in_a_day: int
    """Events of severity error, told in the last 24 hours."""
    operators_socket: str
    """The operators' socket; empty if there is none."""
    held: Held
    peers: tuple[PeerHeld, ...]
    """A few, those that hold most."""
    now_us: int
    """By the daemon's wall clock."""
    disk_size_bytes: int
    """Of the file system of the data directory."""
    open_files: int
    """Descriptors of the process."""
    open_files_max: int
    """What the system allows it; 0: any number."""
    sessions_max: int
    """Connected and kept ones together."""
    producers: int
    """That it remembers, one a partition."""
    producers_max: int
    """From how many on most new ones are refused."""
    incarnation: str = ""
    """Of its data: a restart keeps it."""
    restores: int = 0
    """How often its data was restored from a backup."""
    backup_at_ms: int | None = None
    """When the last backup that it knows of was taken."""
    principals_suspended: int = 0
    """By a restore from a backup, until they are confirmed."""
    before: str = "unknown"
    """How the daemon before ended: ``stopped``, ``killed``, ``power-lost``, ``crashed``."""
    before_ended_at_ms: int | None = None
    """Where it could say so."""
    before_reason: str = ""
    certificate: str = ""
    """The file of what it serves TLS with; empty where it has no TLS."""
    certificate_ends_ms: int | None = None
    """When that ends."""
    certificate_problem: str = ""
    """Why what lies in the file now is not served."""
    """Of a crash."""


class Daemon:
    """Questions to the daemon itself; reached as ``client.daemon``."""

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection

    async def status(self) -> DaemonStatus:
        """How the daemon stands.

        Raises:
            Unreachable: no daemon answers.
        """
        from dss_api.v1 import daemon_pb2

        request = daemon_pb2.DaemonStatusRequest()
        reply = await self._connection.ask(self._connection.daemon.Status, request)
        return decoded(
            reply,
            DaemonStatus,
            before=reply.before or "unknown",
            before_ended_at_ms=reply.before_ended_at_ms or None,
            backup_at_ms=reply.backup_at_ms or None,
        )

    async def findings(self, *, topic: str = "", client_id: str = "") -> "tuple[Verdict, ...]":
        """What the daemon looked at, and what is wrong: good findings too, with their codes.

        Args:
            topic: only what concerns this topic.
            client_id: only what concerns the session of this client.

        Raises:
            TopicNotFound: there is no such topic.
        """
        from dss_api.v1 import daemon_pb2
        from dss_client.answers import Verdict

        request = daemon_pb2.FindingsRequest(topic=topic, client_id=client_id)
        reply = await self._connection.ask(self._connection.daemon.Findings, request)
        return tuple(decoded(each, Verdict) for each in reply.findings)
