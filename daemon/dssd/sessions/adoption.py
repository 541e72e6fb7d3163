"""Gives sessions another owner, in memory and in the store.

Invariant: a session changes its owner only if it still has the planned one, and only while it has
no connection; the caller holds the locks of all client ids. This module does not know who may ask.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dss_core.errors import TooManySessions
from dssd.sessions import session_rows
from dssd.sessions.kept import KeptSession
from dssd.sessions.room import SESSIONS_PRINCIPAL_MAX, SessionRoom
from dssd.store.port import Store


@dataclass(frozen=True, slots=True)
class Adoption:
    """A session that is to get another owner."""

    client_id: str
    session_id: bytes
    before: str
    """The present owner."""
    to: str

    def reversed(self) -> "Adoption":
        """The adoption that undoes this one."""
        return Adoption(self.client_id, self.session_id, self.to, self.before)


def left_out(adoptions: Sequence[Adoption], kept: Sequence[KeptSession | None]) -> list[str]:
    """The clients whose session has neither the planned old owner nor the new one."""
    return [
        each.client_id
        for each, known in zip(adoptions, kept, strict=True)
        if known is None
        or known.row.session_id != each.session_id
        or (known.row.principal != each.to and not _may_be_taken(known, each))
    ]


async def adopt(
    store: Store,
    room: SessionRoom,
    adoptions: Sequence[Adoption],
    kept: Sequence[KeptSession | None],
) -> None:
    """Change the owners, in one commit.

    Raises:
        TooManySessions: the new owner has room for fewer.
        DiskFull: nothing was changed.
    """
    taken = [
        (each, known)
        for each, known in zip(adoptions, kept, strict=True)
        if known is not None and _may_be_taken(known, each)
    ]
    for owner in {each.to for each, _ in taken}:
        more = sum(each.to == owner for each, _ in taken)
        if not room.has_room_for(owner, more):
            raise TooManySessions(whose=f"{owner}'s", limit=SESSIONS_PRINCIPAL_MAX)
    rows = [replace(known.row, principal=each.to) for each, known in taken]
    stored = [(row, known.version) for row, (_, known) in zip(rows, taken, strict=True)]
    versions = await session_rows.put_all(store, stored)
    for row, version, (each, known) in zip(rows, versions, taken, strict=True):
        known.row, known.version = row, version
        room.moved(each.client_id, each.before, each.to)


def _may_be_taken(known: KeptSession, adoption: Adoption) -> bool:
    return (
        known.connection is None
        and known.row.session_id == adoption.session_id
        and known.row.principal == adoption.before
    )
