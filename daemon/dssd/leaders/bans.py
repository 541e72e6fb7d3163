"""The bans of a group: stored by the wall clock, kept by its leader on the monotonic clock.

Invariant: while a daemon runs, a ban is measured on the monotonic clock, so a jump of the wall
clock ends none. Over a restart only the stored wall time is known; a ban then lasts no longer than
was asked for, even if the clock was set back.
This module does not know what a ban keeps a client from.
"""

from contextlib import suppress
from typing import Protocol

from dssd.leaders.limits import BAN_MS_MAX
from dssd.machines.leader.hand_over_events import Ban
from dssd.store.keys import key_of
from dssd.store.paging import scan_all
from dssd.store.port import Delete, PreconditionFailed, Store, VersionIs
from dssd.store.rows import BanRow


class Clocks(Protocol):
    """The clocks that a ban is measured by."""

    def now_ms(self) -> int:
        """Monotonic."""

    def wall_ms(self) -> int:
        """By the wall clock."""


def ban_of(row: BanRow, clock: Clocks) -> Ban:
    """The ban as a leader of this daemon knows it."""
    left_ms = min(row.until_ms - clock.wall_ms(), row.lasts_ms or BAN_MS_MAX)
    return Ban(row.client_id, row.until_ms, clock.now_ms() + left_ms)


async def stored_bans(store: Store, group_id: int, clock: Clocks) -> tuple[Ban, ...]:
    """The bans of the group, those that are over included."""
    return tuple(ban_of(found.row, clock) for found in await scan_all(store, BanRow, (group_id,)))


async def collect_ended_bans(store: Store, wall_ms: int) -> None:
    """Remove the rows of bans that are over."""
    for found in await scan_all(store, BanRow):
        if found.row.until_ms <= wall_ms:
            key = key_of(found.row)
            with suppress(PreconditionFailed):  # the client was banned anew meanwhile
                await store.commit([Delete(BanRow, key)], [VersionIs(BanRow, key, found.version)])
