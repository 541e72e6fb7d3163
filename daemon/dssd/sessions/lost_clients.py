"""Clients whose connection is lost, but that may live and hand out the records that they have.

The kernel ends a unix socket with its process, so there a lost connection means a dead client. Any
other connection may be reset on the way. Then the client goes on handing out until, by its own
clock, it has heard nothing for too long. Invariant: a lost client keeps its streams until it has
been silent for longer than that, or is known to hand out nothing more. This module does not know
what becomes of the session itself.
"""

import asyncio

from dss_core.errors import SessionTakenOver
from dssd.limits import SILENT_HOLDER_MS, TAKEOVER_DRAIN_S
from dssd.sessions.client_items import Opening
from dssd.sessions.session import Session


class LostClients:
    """The newest lost connection of each client id."""

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[Session, asyncio.TimerHandle]] = {}

    def lose(self, session: Session) -> None:
        """The connection is over. Does nothing the second time."""
        session.stop()
        left_ms = 0 if session.dies_with_connection else SILENT_HOLDER_MS - session.silent_ms()
        if left_ms <= 0:
            session.release()
        elif not session.released.is_set() and not self._has(session):
            loop = asyncio.get_running_loop()
            timer = loop.call_later(left_ms / 1_000, self._end_silent, session)
            self._waiting[session.client_id] = session, timer

    async def make_way(self, older: Session | None, client_id: str, opening: Opening) -> None:
        """End the older connection, once its client hands out nothing more."""
        if opening.session_id:
            # The same client is back, and has dropped all records of the older connection.
            self._end(client_id, is_silent=True)
        else:
            if older is not None:
                await older.drain(TAKEOVER_DRAIN_S, charges=True)
            # Its connection may have been lost before that, or meanwhile.
            if (waiting := self._waiting.get(client_id)) is not None:
                await waiting[0].released.wait()
        if older is not None:
            older.end(SessionTakenOver(client_id=client_id), is_silent=True)

    def end_all(self) -> None:
        """The daemon stops, and lends nothing any more."""
        for client_id in list(self._waiting):
            self._end(client_id)

    def _has(self, session: Session) -> bool:
        waiting = self._waiting.get(session.client_id)
        return waiting is not None and waiting[0] is session

    def _end_silent(self, session: Session) -> None:
        del self._waiting[session.client_id]
        session.release()

    def _end(self, client_id: str, *, is_silent: bool = False) -> None:
        waiting = self._waiting.pop(client_id, None)
        if waiting is not None:
            session, timer = waiting
            timer.cancel()
            session.release(is_silent=is_silent)
