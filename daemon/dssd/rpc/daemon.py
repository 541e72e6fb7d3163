"""The servicer of `Daemon`: what this process is and how it stands."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import grpc.aio

from dss_api.v1 import daemon_pb2, daemon_pb2_grpc
from dss_api.values import message_of
from dss_core.answers import Held, UnreadLoss
from dss_core.errors import StreamNotFound
from dss_core.ids import StreamId
from dssd.descriptors import open_files, open_files_max
from dssd.life import End
from dssd.log.limits import PRODUCERS_MAX, PRODUCERS_RESERVE
from dssd.log.segment_log import SegmentLog
from dssd.loop_yield import LoopTurn
from dssd.rpc.greediest_peers import PeerHeld
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
    held: Held
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
        return message_of(
            daemon_pb2.DaemonStatus,
            facts,
            quarantined=[
                daemon_pb2.Quarantined(file=file, reason=reason)
                for file, reason in facts.quarantined
            ],
            open_files=open_files(),
            open_files_max=open_files_max(),
            sessions_max=SESSIONS_MAX,
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
