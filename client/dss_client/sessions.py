"""Sessions of all clients, as operators see them; one's own is in `dss_client.session`.

Invariant: frozen values out; no wire message leaves this module.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dss_api.values import decoded

if TYPE_CHECKING:
    from dss_api.v1 import sessions_pb2
    from dss_client._connection import Connection


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """What the daemon keeps of a client."""

    client_id: str
    state: str
    """``connected`` or ``detached``."""
    since_ms: int
    """Connected since then, or without a connection."""
    expiry_s: int
    """How long it is kept without one."""
    subscriptions: int
    private_subscriptions: int
    """Those of them that it shares with nobody."""
    principal: str
    peer: str
    """Where it is connected from; empty where it is not."""


class Sessions:
    """The sessions of a daemon; reached as ``client.sessions``."""

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection

    async def list(self) -> tuple[SessionSummary, ...]:
        """Every session, by client id."""
        from dss_api.v1 import sessions_pb2

        found: list[SessionSummary] = []
        while True:
            after = found[-1].client_id if found else ""
            request = sessions_pb2.ListSessionsRequest(after_client_id=after)
            reply = await self._connection.ask(self._connection.sessions.List, request)
            found += map(session_from_wire, reply.sessions)
            if not reply.more:
                return tuple(found)


def session_from_wire(session: "sessions_pb2.SessionSummary") -> SessionSummary:
    """A session as a value of our own."""
    state = "connected" if session.connected else "detached"
    return decoded(session, SessionSummary, state=state)
