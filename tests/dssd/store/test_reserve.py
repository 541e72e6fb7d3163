"""What the store can still do on a disk that is full, and for how long."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from dss_core.errors import DiskFull
from dssd.store import reserve, transactions
from dssd.store.port import Put
from dssd.store.rows import LeaderRow
from dssd.store.sqlite import SqliteStore
from support.prerequisites import MOUNT, leave_out
from support.small_disk import CannotMount, fill, mounted

DISK_BYTES = 48 << 20
RESERVE_BYTES = min(reserve.STORE_PAGES_BYTES_KEPT, DISK_BYTES // reserve.STORE_RESERVE_SHARE)
BLOB = b"x" * 500
ROWS_MAX = 100_000


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    try:
        with mounted(tmp_path / "disk", DISK_BYTES) as disk:
            yield disk
    except CannotMount as why:
        leave_out(MOUNT, str(why))


@pytest.fixture
async def store(disk: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(disk / "store.sqlite")
    yield store
    await store.close()


def row(number: int, beat: int = 0) -> Put:
    return Put(LeaderRow(number, BLOB, 1, beat))


async def test_rows_that_exist_are_rewritten_on_a_full_disk_for_as_long_as_it_is_full(
    store: SqliteStore, disk: Path
) -> None:
    await store.commit([row(number) for number in range(200)])
    fill(disk)
    for beat in range(5_000):
        await store.commit([row(beat % 200, beat)])
    found = await store.read(LeaderRow, (4_999 % 200,))
    assert found is not None
    assert found.row.beat == 4_999


async def added_until_full(store: SqliteStore, first: int) -> int:
    """Add rows until none finds room; returns the bytes in them."""
    for number in range(first, ROWS_MAX):
        try:
            await store.commit([row(number)])
        except DiskFull:
            return (number - first) * len(BLOB)
    raise AssertionError("the disk is never full")


async def test_new_rows_use_up_the_reserve_of_a_full_disk_and_old_rows_are_still_rewritten(
    store: SqliteStore, disk: Path
) -> None:
    await store.commit([row(number) for number in range(200)])
    fill(disk)
    assert await added_until_full(store, 200) >= RESERVE_BYTES // 4
    for beat in range(2_000):
        await store.commit([row(beat % 200, beat)])


async def test_on_a_full_disk_a_commit_of_new_rows_is_refused_and_those_that_share_its_sync_are_not(
    store: SqliteStore, disk: Path
) -> None:
    await store.commit([row(number) for number in range(200)])
    fill(disk)
    await added_until_full(store, 200)
    outcomes = await asyncio.gather(
        store.commit([row(1, 7)]),
        store.commit([row(number) for number in range(ROWS_MAX, ROWS_MAX + 100)]),
        store.commit([row(2, 7)]),
        store.next_id(),
        return_exceptions=True,
    )
    assert [isinstance(outcome, DiskFull) for outcome in outcomes] == [False, True, False, False]


async def test_the_reserve_is_made_again_once_there_is_room(store: SqliteStore, disk: Path) -> None:
    filler = fill(disk)
    await added_until_full(store, 0)
    filler.unlink()
    for number in range(2 * transactions.STORE_CHECKPOINT_PAGES):
        await store.commit([row(number, 1)])
    fill(disk)
    assert await added_until_full(store, ROWS_MAX // 2) >= RESERVE_BYTES // 4


async def test_a_commit_that_is_larger_than_the_reserve_finds_room_where_the_disk_has_it(
    store: SqliteStore,
) -> None:
    rows = 2 * RESERVE_BYTES // len(BLOB)
    await store.commit([row(number) for number in range(rows)])
    assert await store.read(LeaderRow, (rows - 1,)) is not None


async def test_a_store_opens_on_a_full_disk(disk: Path) -> None:
    path = disk / "store.sqlite"
    store = await SqliteStore.open(path)
    await store.commit([row(1)])
    await store.close()
    fill(disk)
    for _ in range(2):
        store = await SqliteStore.open(path)
        assert await store.read(LeaderRow, (1,)) is not None
        await store.close()


async def test_a_store_opens_after_a_crash_while_the_reserve_was_made(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    await (await SqliteStore.open(path)).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE room (bytes BLOB)")
        connection.execute("INSERT INTO room VALUES (zeroblob(100000))")
        connection.commit()
    store = await SqliteStore.open(path)
    await store.close()
    with closing(sqlite3.connect(path)) as connection:
        left = connection.execute("SELECT * FROM sqlite_schema WHERE name = 'room'").fetchall()
    assert left == []
