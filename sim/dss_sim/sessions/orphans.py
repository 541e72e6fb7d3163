"""What the store may hold when everything is quiet: nothing without an owner that exists.

S18  what a session owned goes with it: subscriptions, private groups, and their rows
S19  the daemon has in memory exactly the groups that the store has
"""

from collections.abc import Mapping, Sequence

from dss_sim.groups.checker import Violation
from dss_sim.sessions.slow_store import Disk
from dssd.leaders.declarations import EXCLUSIVE
from dssd.store.rows import (
    GrantRow,
    GroupNameRow,
    GroupRow,
    LeaderRow,
    ProgressRow,
    SessionRow,
    StreamSetRow,
    SubscriptionRow,
)


def check_orphans(disk: Disk, known: Sequence[GroupRow] | None) -> None:
    """Check all rows; ``known`` are the groups in the daemon's memory, if one lives.

    Raises:
        Violation: something has no owner.
    """
    groups = {row.group_id: row for row in disk.held(GroupRow)}
    _check_sessions(disk, groups)
    _check_rows_of_groups(disk, groups)
    if known is not None and list(known) != list(groups.values()):
        raise Violation("S19", f"the daemon knows {known}, the store has {groups}")


def _check_sessions(disk: Disk, groups: Mapping[int, GroupRow]) -> None:
    live = {row.session_id for row in disk.held(SessionRow)}
    subscriptions = disk.held(SubscriptionRow)
    used = {(row.session_id, row.group_id) for row in subscriptions}
    for row in subscriptions:
        if row.session_id not in live or row.group_id not in groups:
            raise Violation("S18", f"its session or its group is gone: {row}")
    for group in groups.values():
        if group.kind == EXCLUSIVE and (group.session_id, group.group_id) not in used:
            raise Violation("S18", f"no subscription has it: {group}")


def _check_rows_of_groups(disk: Disk, groups: Mapping[int, GroupRow]) -> None:
    owned: list[LeaderRow | GrantRow | ProgressRow | StreamSetRow | GroupNameRow] = [
        *disk.held(LeaderRow),
        *disk.held(GrantRow),
        *disk.held(ProgressRow),
        *disk.held(StreamSetRow),
        *(name for name in disk.held(GroupNameRow) if name.destroyed_at_ms is None),
    ]
    for row in owned:
        if row.group_id not in groups:
            raise Violation("S18", f"its group is gone: {row}")
