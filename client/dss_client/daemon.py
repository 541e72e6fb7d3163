"""The daemon's own state, as it reports it.

Invariant: frozen values out; no wire message leaves this module.
"""

from typing import TYPE_CHECKING

from dss_api.values import decoded
from dss_core.answers import DaemonStatus

if TYPE_CHECKING:
    from dss_client._connection import Connection
    from dss_client.answers import Verdict


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
