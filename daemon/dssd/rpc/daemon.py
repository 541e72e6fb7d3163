"""The servicer of `Daemon`: what this process is and how it stands."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import grpc.aio

from dss_api.v1 import daemon_pb2, daemon_pb2_grpc
from dss_core.errors import StreamNotFound
from dss_core.ids import StreamId
from dssd.descriptors import open_files, open_files_max
from dssd.leaders.retention_losses import UnreadLoss
from dssd.life import End
from dssd.log.limits import PRODUCERS_MAX, PRODUCERS_RESERVE
from dssd.log.segment_log import SegmentLog
from dssd.loop_yield import LoopTurn
from dssd.rpc.greediest_peers import HeldByPeers, PeerHeld
from dssd.sessions.limits import SESSIONS_MAX

Context = grpc.aio.ServicerContext[Any, Any]


@dataclass(frozen=True, slots=True)
class DaemonFacts:
    """How the daemon stands at a moment."""

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
    quarantined: tuple[tuple[str, str], ...]
    """Files that were set aside, with the reason."""
    unread_records_gone: int
    """Records that retention took before a group had acknowledged them, since the start."""
    unread_losses: tuple[UnreadLoss, ...]
    """By topic and group, the latest last."""
    errors_in_a_day: int
    """Events of the worst severity, told in the last 24 hours."""
    operators_socket: str
    """Empty where there is none."""
    held: HeldByPeers
    peers: tuple[PeerHeld, ...]
    """Who holds most of it."""
    now_us: int
    """By the wall clock."""
    disk_size_bytes: int
    producers: int
    """Remembered, one a partition."""
    before: End


class DaemonServicer(daemon_pb2_grpc.DaemonServicer):
    """Tells the facts."""

    def __init__(self, facts: Callable[[], Awaitable[DaemonFacts]]) -> None:
        self._facts = facts

    async def Status(
        self, request: daemon_pb2.DaemonStatusRequest, context: Context
    ) -> daemon_pb2.DaemonStatus:
        """How the daemon stands now."""
        facts = await self._facts()
        return daemon_pb2.DaemonStatus(
            version=facts.version,
            pid=facts.pid,
            started_at_ms=facts.started_at_ms,
            data_dir=facts.data_dir,
            listening=facts.listening,
            state=facts.state,
            state_reason=facts.state_reason,
            topics=facts.topics,
            streams=facts.streams,
            groups=facts.groups,
            sessions=facts.sessions,
            sessions_waiting=facts.sessions_waiting,
            log_bytes=facts.log_bytes,
            disk_free_bytes=facts.disk_free_bytes,
            sqlite_version=facts.sqlite_version,
            boot_id=facts.boot_id,
            quarantined=[
                daemon_pb2.Quarantined(file=file, reason=reason)
                for file, reason in facts.quarantined
            ],
            unread_records_gone=facts.unread_records_gone,
            unread_losses=[
                daemon_pb2.UnreadLoss(
                    topic=loss.topic,
                    group=loss.group,
                    filter=loss.filter,
                    records=loss.records,
                    exact=loss.exact,
                    last_at_ms=loss.last_at_ms,
                )
                for loss in facts.unread_losses
            ],
            errors_in_a_day=facts.errors_in_a_day,
            operators_socket=facts.operators_socket,
            held=daemon_pb2.Held(**asdict(facts.held)),
            peers=[daemon_pb2.PeerHeld(**asdict(peer)) for peer in facts.peers],
            now_us=facts.now_us,
            disk_size_bytes=facts.disk_size_bytes,
            open_files=open_files(),
            open_files_max=open_files_max(),
            sessions_max=SESSIONS_MAX,
            producers=facts.producers,
            producers_max=PRODUCERS_MAX - PRODUCERS_RESERVE,
            before=facts.before.how,
            before_ended_at_ms=facts.before.at_ms,
            before_reason=facts.before.reason,
        )


async def bytes_of(log: SegmentLog, streams: Sequence[StreamId]) -> int:
    """How much of the log these streams have."""
    size_bytes = 0
    turn = LoopTurn()
    for stream in streams:
        await turn.give_way()
        with suppress(StreamNotFound):  # its topic was removed meanwhile
            size_bytes += log.bounds(stream).bytes
    return size_bytes
