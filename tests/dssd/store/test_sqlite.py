"""What only the SQLite adapter has: shared transactions, the queue, the write-ahead log."""

import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest

from dss_core.errors import BackupFailed, DiskFailed, DssError, Stopping
from dssd.store.port import Absent, Put, VersionIs
from dssd.store.rows import LeaderRow
from dssd.store.sqlite import SqliteStore
from dssd.store.transactions import LogSize, ValueUnfit
from dssd.store.writer import THREAD


def leader(group_id: int, epoch: int = 1, boot_id: bytes = b"") -> LeaderRow:
    return LeaderRow(group_id=group_id, boot_id=boot_id, leader_epoch=epoch, beat=0)


async def test_a_value_that_sqlite_cannot_hold_fails_only_its_own_commit(
    sqlite_store: SqliteStore,
) -> None:
    good, bad, last = await asyncio.gather(
        sqlite_store.commit([Put(leader(1))]),
        sqlite_store.commit([Put(leader(2)), Put(leader(3, epoch=2**63))]),
        sqlite_store.commit([Put(leader(4))]),
        return_exceptions=True,
    )
    assert isinstance(bad, ValueUnfit)
    assert isinstance(good, list)
    assert isinstance(last, list)
    assert [found.row.group_id for found in await sqlite_store.scan(LeaderRow)] == [1, 4]


async def test_a_value_of_the_wrong_type_fails_only_its_own_commit(
    sqlite_store: SqliteStore,
) -> None:
    wrong = leader(1, boot_id="text")  # type: ignore[arg-type] # the mistake under test
    outcomes = await asyncio.gather(
        sqlite_store.commit([Put(wrong)]),
        sqlite_store.commit([Put(leader(2))]),
        return_exceptions=True,
    )
    assert isinstance(outcomes[0], Exception)
    assert not isinstance(outcomes[0], DssError)
    assert isinstance(outcomes[1], list)


async def test_commits_of_one_turn_see_each_other_in_order(sqlite_store: SqliteStore) -> None:
    outcomes = await asyncio.gather(
        sqlite_store.commit([Put(leader(1, 1))], [Absent(LeaderRow, (1,))]),
        sqlite_store.commit([Put(leader(1, 2))], [Absent(LeaderRow, (1,))]),
        return_exceptions=True,
    )
    assert isinstance(outcomes[0], list)
    assert isinstance(outcomes[1], Exception)


async def test_a_commit_whose_caller_goes_away_is_still_whole(sqlite_store: SqliteStore) -> None:
    rows = [Put(leader(at)) for at in range(50)]
    async with asyncio.TaskGroup() as group:
        going = group.create_task(sqlite_store.commit(rows), name="going away")
        await asyncio.sleep(0)
        going.cancel()
    assert len(await sqlite_store.scan(LeaderRow)) in (0, 50)
    (version,) = await sqlite_store.commit([Put(leader(1, 2))])
    await sqlite_store.commit([Put(leader(1, 3))], [VersionIs(LeaderRow, (1,), version)])


async def test_more_commits_than_may_wait_all_get_through(
    sqlite_store: SqliteStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("dssd.store.sqlite.STORE_COMMITS_WAITING_MAX", 7)
    monkeypatch.setattr("dssd.store.writer.STORE_COMMITS_PER_SYNC_MAX", 3)
    small = await SqliteStore.open(tmp_path / "small.sqlite")
    versions = await asyncio.gather(*(small.commit([Put(leader(at))]) for at in range(100)))
    assert versions == sorted(versions)
    assert len(await small.scan(LeaderRow)) == 100
    await small.close()


async def test_closing_answers_what_was_handed_over(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    store = await SqliteStore.open(path)
    async with asyncio.TaskGroup() as group:
        for at in range(100):
            group.create_task(store.commit([Put(leader(at))]), name=f"commit {at}")
        await asyncio.sleep(0)
        group.create_task(store.close(), name="close")
    again = await SqliteStore.open(path)
    assert len(await again.scan(LeaderRow)) == 100
    await again.close()


async def test_the_database_is_touched_in_one_named_thread(sqlite_store: SqliteStore) -> None:
    await sqlite_store.commit([Put(leader(1))])
    assert [thread.name for thread in threading.enumerate()].count(THREAD) == 1


async def test_the_write_ahead_log_stays_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dssd.store.transactions.STORE_CHECKPOINT_PAGES", 50)
    monkeypatch.setattr("dssd.store.reserve.STORE_WAL_BYTES_KEPT", 1)
    monkeypatch.setattr("dssd.store.reserve.STORE_PAGES_BYTES_KEPT", 1)
    path = tmp_path / "store.sqlite"
    store = await SqliteStore.open(path)
    for round_ in range(200):
        await store.commit([Put(leader(at, round_ + 1, b"x" * 200)) for at in range(100)])
    log_bytes = path.with_name("store.sqlite-wal").stat().st_size
    assert 0 < log_bytes < 150 * 4_120
    await store.close()


async def test_a_large_write_ahead_log_gives_its_space_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dssd.store.transactions.STORE_CHECKPOINT_PAGES", 50)
    monkeypatch.setattr("dssd.store.transactions.STORE_WAL_BYTES_MAX", 100_000)
    monkeypatch.setattr("dssd.store.reserve.STORE_PAGES_BYTES_KEPT", 1)
    path = tmp_path / "store.sqlite"
    store = await SqliteStore.open(path)
    await store.commit([Put(leader(at, 1, b"x" * 2_000)) for at in range(500)])
    await store.next_id()
    assert path.with_name("store.sqlite-wal").stat().st_size < 100_000
    await store.close()


def test_the_guess_of_the_logs_size_is_learnt_from_each_write_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dssd.store.transactions.STORE_CHECKPOINT_PAGES", 100)
    log = LogSize(page_bytes=4_096)
    log.add(98)
    assert log.due()
    log.measured(pages=10)
    log.add(98)
    assert not log.due()
    log.add(900)
    assert log.due()
    log.measured(pages=1_002)
    log.add(98)
    assert log.due()


async def test_a_failing_thread_fails_every_caller_and_tells_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures: list[BaseException] = []
    store = await SqliteStore.open(tmp_path / "store.sqlite", on_failure=failures.append)
    watch = store.watch(LeaderRow)
    await store.commit([Put(leader(1))])

    def broken(*_: object) -> None:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
        error.sqlite_errorname = "SQLITE_IOERR_FSYNC"
        raise error

    monkeypatch.setattr("dssd.store.transactions.Transactions.apply", broken)
    outcomes = await asyncio.gather(
        *(store.commit([Put(leader(at))]) for at in range(10)), return_exceptions=True
    )
    assert all(isinstance(outcome, DiskFailed) for outcome in outcomes)
    assert len(failures) == 1
    assert "SQLITE_IOERR_FSYNC" in str(failures[0])
    with pytest.raises(DiskFailed):
        await store.read(LeaderRow, (1,))
    assert (await anext(watch)).key == (1,)
    with pytest.raises(DiskFailed):
        await anext(watch)
    await store.close()


@pytest.mark.parametrize(
    "blunder", [AssertionError("no row"), sqlite3.ProgrammingError("wrong bindings")]
)
async def test_a_programmers_error_in_the_thread_is_not_taken_for_a_failed_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blunder: Exception
) -> None:
    failures: list[BaseException] = []
    store = await SqliteStore.open(tmp_path / "store.sqlite", on_failure=failures.append)

    def broken(*_: object) -> None:
        raise blunder

    monkeypatch.setattr("dssd.store.transactions.Transactions.apply", broken)
    with pytest.raises(RuntimeError) as failed:
        await store.commit([Put(leader(1))])
    assert failed.value.__cause__ is blunder
    assert failures == [blunder]
    assert blunder.__traceback__ is not None
    await store.close()


async def test_a_store_is_closed_on_a_full_disk_and_keeps_its_write_ahead_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    failures: list[BaseException] = []
    path = tmp_path / "store.sqlite"
    store = await SqliteStore.open(path, on_failure=failures.append)
    await store.commit([Put(leader(1))])
    with monkeypatch.context() as patched:
        patched.setattr("dssd.store.transactions.Transactions.write_back", full)
        await store.close()
    assert failures == []
    again = await SqliteStore.open(path)
    assert await again.read(LeaderRow, (1,)) is not None
    await again.close()


async def test_a_copy_has_what_was_committed_while_it_was_made_and_commits_do_not_wait(
    sqlite_store: SqliteStore, tmp_path: Path
) -> None:
    """What was answered before the copy is in it; the last one may have been answered behind."""
    many = [Put(leader(number, boot_id=bytes(2_000))) for number in range(5_000)]
    await sqlite_store.commit(many)
    copying = asyncio.create_task(sqlite_store.copy_to(tmp_path / "copy.sqlite"))
    committed = 0
    while not copying.done():
        await sqlite_store.commit([Put(leader(10_000 + committed)), Put(leader(7, committed))])
        committed += not copying.done()
    await copying
    assert committed > 5
    copy = await SqliteStore.open(tmp_path / "copy.sqlite")
    found = {each.row.group_id: each.row for each in await copy.scan(LeaderRow)}
    await copy.close()
    assert {number for number in found if number < 10_000} == set(range(5_000))
    assert abs(len(found) - 5_000 - committed) <= 1
    assert found[7].leader_epoch >= committed - 2


async def test_a_copy_that_cannot_be_written_ends_nothing(
    sqlite_store: SqliteStore, tmp_path: Path
) -> None:
    with pytest.raises(BackupFailed):
        await sqlite_store.copy_to(tmp_path / "no folder" / "copy.sqlite")
    await sqlite_store.commit([Put(leader(1))])


async def test_a_store_that_is_closed_does_not_wait_for_a_copy(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "store.sqlite")
    await store.commit([Put(leader(number, boot_id=bytes(2_000))) for number in range(5_000)])
    copying = asyncio.create_task(store.copy_to(tmp_path / "copy.sqlite"))
    await asyncio.sleep(0)
    await store.close()
    with pytest.raises(Stopping):
        await copying
