"""Which backups count."""

from pathlib import Path

import pytest

from dss_core.errors import IllegalArgument
from dssd.backups.ledger import BACKUPS_UNCONFIRMED_MAX, BackupLedger, WrittenBackup
from dssd.backups.snapshots import Snapshot
from dssd.events.model import Event
from dssd.log.file_list import LogEnds

SNAPSHOT = Snapshot(Path("/x"), b"i", 7_000_000, 15, (), LogEnds({}, {}))
WRITTEN = WrittenBackup("/backups", 100, 10)


def test_a_backup_counts_once_it_is_confirmed() -> None:
    told: list[Event] = []
    ledger = BackupLedger(told.append, 0)
    id_ = ledger.hand_over(SNAPSHOT)
    assert (ledger.last_at_ms, told) == (0, [])
    ledger.confirm(id_, WRITTEN)
    assert ledger.last_at_ms == 7_000
    assert [(each.kind.code, each.subject) for each in told] == [("backup.done", "/backups")]


def test_nobody_confirms_what_was_not_handed_over_nor_twice() -> None:
    ledger = BackupLedger(lambda _: None, 0)
    id_ = ledger.hand_over(SNAPSHOT)
    ledger.confirm(id_, WRITTEN)
    for wrong in (id_, b"", bytes(16)):
        with pytest.raises(IllegalArgument):
            ledger.confirm(wrong, WRITTEN)


def test_of_many_that_nobody_confirms_the_oldest_is_forgotten() -> None:
    ledger = BackupLedger(lambda _: None, 0)
    ids = [ledger.hand_over(SNAPSHOT) for _ in range(BACKUPS_UNCONFIRMED_MAX + 1)]
    with pytest.raises(IllegalArgument):
        ledger.confirm(ids[0], WRITTEN)
    ledger.confirm(ids[-1], WRITTEN)
