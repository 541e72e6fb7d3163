"""Closes sessions: a client's session ends for good, with all that it alone owns.

Invariant: only the planned session is closed; one that the client opens later stays.
"""

import json
from collections.abc import Awaitable, Callable
from functools import partial

from dss_core.changes import CloseSession
from dss_core.counted import counted
from dss_core.errors import SessionReplaced
from dss_core.times import text_of_span
from dssd.limits import CLOSE_DRAIN_S
from dssd.operations.kinds.final import Final
from dssd.operations.plans import Begun, Plan
from dssd.sessions.listing import SessionView
from dssd.sessions.sessions import Sessions
from dssd.store.rows import OperationRow


class SessionClosures(Final):
    """Ends of sessions."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def plan(self, change: CloseSession) -> Plan:
        """What ending the session would do.

        Raises:
            SessionNotFound: the client has none.
            SessionReplaced: it has another one than the change names.
        """
        session = await self._found(change)
        return Plan(
            change=CloseSession(session.client_id, session.session_id),
            kind="sessions.close",
            subject=session.client_id,
            revision=0,
            summary=f"close the session of {session.client_id}, {session.state}, "
            f"{counted(session.subscriptions, 'subscription')}",
            effects=tuple(_effects(session)),
            members=(session.client_id,),
            not_undoable_because="the client has to open a new session",
        )

    async def begin(self, plan: Plan, number: int) -> Begun:
        """The end, as work."""
        assert isinstance(plan.change, CloseSession)
        session = await self._found(plan.change)
        before = {
            "session_id": session.session_id.hex(),
            "state": session.state,
            "subscriptions": session.subscriptions,
            "private": session.private,
        }
        return Begun(work=self._work(session.client_id, session.session_id), before=before)

    async def resumed(self, row: OperationRow) -> Begun:
        """It may have ended already."""
        session_id = bytes.fromhex(json.loads(row.before)["session_id"])
        return Begun(work=self._work(row.subject, session_id))

    async def _found(self, change: CloseSession) -> SessionView:
        session = await self._sessions.find(change.client_id)
        if change.session_id not in (b"", session.session_id):
            raise SessionReplaced(client_id=change.client_id)
        return session

    def _work(self, client_id: str, session_id: bytes) -> Callable[[], Awaitable[None]]:
        return partial(self._sessions.close, client_id, session_id)


def _effects(session: SessionView) -> list[str]:
    told: list[str] = []
    if session.connected:
        told.append("The client is told that its session was closed, and is disconnected.")
    if session.subscriptions > session.private:
        told.append(
            "Streams that it holds in groups go to their other members once it has said how far it "
            f"handed out, after {text_of_span(int(CLOSE_DRAIN_S * 1_000))} at most."
        )
    if session.private:
        told.append(
            f"{counted(session.private, 'private subscription goes', 'private subscriptions go')}, "
            "with all progress."
        )
    told.append("It may open a new session: only a ban keeps it out of a group.")
    return told
