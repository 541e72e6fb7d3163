"""What may be left when all is quiet: nothing without an owner."""

from random import Random

import pytest

from dss_sim.groups.checker import Violation
from dss_sim.groups.store import at_once
from dss_sim.sessions.orphans import check_orphans
from dss_sim.sessions.slow_store import Disk
from dssd.store.port import Put
from dssd.store.rows import (
    GrantRow,
    GroupNameRow,
    GroupRow,
    LeaderRow,
    ProgressRow,
    Row,
    SessionRow,
    StreamSetRow,
    SubscriptionRow,
)

SHARED = GroupRow(1, "g", "t/#", "shared", "now", None, 1, 1, 0)
OWNED = GroupRow(2, "~s/1", "t/#", "exclusive", "now", b"s", 1, 1, 0)
WHOLE: tuple[Row, ...] = (
    SessionRow("ann", b"s", 1, 0, None, "p"),
    SHARED,
    OWNED,
    SubscriptionRow(b"s", 1, "t/#", 2),
    GroupNameRow("g", "t/#", 1, None),
    GroupNameRow("gone", "t/#", 9, destroyed_at_ms=5),
    LeaderRow(1, b"b", 1, 0),
)


def disk_with(*rows: Row) -> Disk:
    disk = Disk(Random(0))
    at_once(disk.rows.commit([Put(row) for row in rows]))
    return disk


def test_what_has_its_owner_may_be_there() -> None:
    check_orphans(disk_with(*WHOLE), [SHARED, OWNED])
    check_orphans(disk_with(*WHOLE), None)


@pytest.mark.parametrize(
    "orphan",
    [
        SubscriptionRow(b"of nobody", 1, "t/#", 1),
        SubscriptionRow(b"s", 2, "t/#", 7),
        GroupRow(3, "~s/3", "t/#", "exclusive", "now", b"s", 1, 1, 0),
        GroupNameRow("other", "t/#", 7, None),
        LeaderRow(7, b"b", 1, 0),
        GrantRow(7, 1, 0, 1, None, None, 0),
        ProgressRow(7, 1, 0, 0, b"", 0, b"", False, 0),
        StreamSetRow(7, b"s", 1),
    ],
    ids=lambda row: type(row).__name__,
)
def test_what_has_no_owner_is_noticed(orphan: Row) -> None:
    with pytest.raises(Violation, match="S18"):
        check_orphans(disk_with(*WHOLE, orphan), None)


def test_a_group_that_the_daemon_does_not_know_is_noticed() -> None:
    with pytest.raises(Violation, match="S19"):
        check_orphans(disk_with(*WHOLE), [SHARED])
