"""The rows of sessions, written one by one or many in a commit.

Invariant: a row is written only over the version that the caller knows. This module does not know
what a row means.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from dssd.store.port import (
    Absent,
    Delete,
    Precondition,
    PreconditionFailed,
    Put,
    Store,
    VersionIs,
)
from dssd.store.rows import SessionRow

STARTED_ROWS_MAX = 4_096
"""Rows of sessions that a start writes with one commit."""


Versioned = tuple[SessionRow, int | None]
"""A row, and the version of the one that is stored; None where there is none."""


async def put(store: Store, row: SessionRow, known: int | None) -> int:
    """Write a session's row, whose version is known to memory; returns the new version."""
    try:
        [version] = await store.commit([Put(row)], [_unchanged(row, known)])
    except PreconditionFailed:
        # Only one object writes these rows, one client id at a time. So if memory is behind, a
        # commit was made and its answer was lost.
        stored = await store.read(SessionRow, (row.client_id,))
        unchanged = _unchanged(row, None if stored is None else stored.version)
        [version] = await store.commit([Put(row)], [unchanged])
    return version


async def put_all(store: Store, rows: Sequence[Versioned]) -> list[int]:
    """Write rows in one commit, or one by one if memory was behind; returns the versions."""
    if not rows:
        return []
    try:
        return await store.commit(
            [Put(row) for row, _ in rows], [_unchanged(row, version) for row, version in rows]
        )
    except PreconditionFailed:
        return [await put(store, row, version) for row, version in rows]


async def written_off(
    store: Store, stored: Sequence[tuple[SessionRow, int]], wall_ms: int
) -> list[tuple[SessionRow, int]]:
    """Mark all sessions that a start found as disconnected from now on; returns them."""
    gone = [each for each in stored if each[0].disconnected_at_ms is not None]
    left = [
        (replace(row, disconnected_at_ms=wall_ms), version)
        for row, version in stored
        if row.disconnected_at_ms is None
    ]
    for at in range(0, len(left), STARTED_ROWS_MAX):
        some = left[at : at + STARTED_ROWS_MAX]
        versions = await put_all(store, some)
        gone += [(row, now) for (row, _), now in zip(some, versions, strict=True)]
    return gone


async def delete_all(store: Store, client_ids: Iterable[str]) -> None:
    """Delete the rows of these clients in one commit."""
    await store.commit([Delete(SessionRow, (client_id,)) for client_id in client_ids])


def _unchanged(row: SessionRow, version: int | None) -> Precondition:
    key = (row.client_id,)
    return Absent(SessionRow, key) if version is None else VersionIs(SessionRow, key, version)
