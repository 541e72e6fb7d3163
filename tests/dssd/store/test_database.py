"""Opening the store on each kind of file."""

import errno
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlite_utils

from dss_core.errors import (
    DataDirectoryLocked,
    DataDirectoryNewer,
    DiskFailed,
    StoreDamaged,
)
from dssd.store import schema
from dssd.store.database import PRAGMAS, opened
from dssd.store.port import Put
from dssd.store.reserve import STORE_WAL_BYTES_KEPT
from dssd.store.rows import LeaderRow, Row, TopicNameRow
from dssd.store.sqlite import SqliteStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite"


async def make_store(path: Path, rows: int = 500) -> None:
    store = await SqliteStore.open(path)
    await store.commit([Put(LeaderRow(at, b"x" * 50, 1, 0)) for at in range(rows)])
    await store.close()


def alter(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


def root_of(path: Path, table: str) -> int:
    connection = sqlite3.connect(path)
    query = "SELECT rootpage FROM sqlite_schema WHERE name = ?"
    (root,) = connection.execute(query, (table,)).fetchone()
    connection.close()
    return (int(root) - 1) * 4096


def contents(path: Path) -> bytes:
    return path.read_bytes()


def overwrite(path: Path, at: int, garbage_bytes: int) -> None:
    whole = bytearray(path.read_bytes())
    whole[at : at + garbage_bytes] = b"\xa5" * garbage_bytes
    path.write_bytes(whole)


def leave_log(path: Path) -> None:
    """What a killed process leaves: the next start checks the file."""
    path.with_name(f"{path.name}-wal").write_bytes(b"torn")


async def test_a_new_store_is_in_wal_mode_and_says_whose_it_is(path: Path) -> None:
    await make_store(path)
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA application_id").fetchone() == (schema.APPLICATION_ID,)
    assert connection.execute("PRAGMA user_version").fetchone() == (schema.FORMAT,)
    connection.close()


def test_every_pragma_is_in_force(path: Path) -> None:
    connection = opened(path)
    for name, _, expected in PRAGMAS:
        assert connection.execute(f"PRAGMA {name}").fetchone()[0] == expected, name
    connection.close()


async def test_a_closed_store_leaves_one_file(path: Path) -> None:
    await make_store(path)
    assert [each.name for each in path.parent.iterdir()] == ["store.sqlite"]


async def test_a_store_of_a_newer_version_is_refused_and_left_as_it_was(path: Path) -> None:
    await make_store(path)
    alter(path, f"PRAGMA user_version = {schema.FORMAT + 1}")
    before = contents(path)
    with pytest.raises(DataDirectoryNewer) as caught:
        await SqliteStore.open(path)
    assert caught.value.fields["found"] == str(schema.FORMAT + 1)
    assert caught.value.fields["known"] == str(schema.FORMAT)
    assert contents(path) == before


async def test_a_file_that_is_no_database_is_damage(path: Path) -> None:
    await make_store(path)
    overwrite(path, 0, 100)
    with pytest.raises(StoreDamaged, match="SQLITE_NOTADB"):
        await SqliteStore.open(path)


async def test_the_database_of_another_program_is_not_touched(path: Path) -> None:
    alter(path, "CREATE TABLE theirs (x)")
    before = contents(path)
    with pytest.raises(StoreDamaged, match="another program"):
        await SqliteStore.open(path)
    assert contents(path) == before


async def test_a_table_with_other_columns_is_damage(path: Path) -> None:
    await make_store(path, rows=0)
    alter(path, "ALTER TABLE leaders DROP COLUMN beat")
    with pytest.raises(StoreDamaged, match="table leaders has columns"):
        await SqliteStore.open(path)


async def test_a_missing_table_is_damage(path: Path) -> None:
    await make_store(path, rows=0)
    alter(path, "DROP TABLE grants")
    with pytest.raises(StoreDamaged, match="table grants"):
        await SqliteStore.open(path)


async def test_a_damaged_page_is_found_after_an_unclean_stop(path: Path) -> None:
    await make_store(path)
    for page in range(3, 6):
        overwrite(path, page * 4096, 200)
    leave_log(path)
    with pytest.raises(StoreDamaged):
        await SqliteStore.open(path)


def place_of(path: Path, value: bytes) -> int:
    content = path.read_bytes()
    assert content.count(value) == 1
    return content.index(value)


@pytest.mark.parametrize(
    ("position", "kind", "reason"),
    [
        pytest.param(
            lambda path: root_of(path, "leaders"), LeaderRow, "SQLITE_CORRUPT", id="a page"
        ),
        pytest.param(
            lambda path: place_of(path, b"leader 300."), LeaderRow, "row .300. of", id="a value"
        ),
        pytest.param(
            lambda path: place_of(path, b"a name"), TopicNameRow, "Could not decode", id="a text"
        ),
    ],
)
async def test_damage_met_while_running_stops_the_store(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    position: Callable[[Path], int],
    kind: type[Row],
    reason: str,
) -> None:
    few_pages = [each for each in PRAGMAS if each[0] != "cache_size"] + [("cache_size", "1", 1)]
    monkeypatch.setattr("dssd.store.database.PRAGMAS", few_pages)
    store = await SqliteStore.open(path)
    rows = [Put(LeaderRow(at, b"leader %d." % at + bytes(200), 1, 0)) for at in range(500)]
    await store.commit([Put(TopicNameRow("a name", 1)), *rows])
    await store.close()
    place = position(path)

    failures: list[BaseException] = []
    store = await SqliteStore.open(path, on_failure=failures.append)
    overwrite(path, place, 1)
    with pytest.raises(StoreDamaged, match=reason):
        await store.scan(kind)
    with pytest.raises(StoreDamaged, match=reason):
        await store.commit([Put(LeaderRow(1, b"", 1, 0))])
    assert [type(failure) for failure in failures] == [StoreDamaged]
    await store.close()


async def test_a_second_opening_of_the_same_file_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dssd.store.database.STORE_BUSY_MS", 0)
    store = await SqliteStore.open(path)
    with pytest.raises(DataDirectoryLocked):
        await SqliteStore.open(path)
    await store.commit([Put(LeaderRow(1, b"", 1, 0))])
    await store.close()


async def test_a_directory_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DiskFailed, match="SQLITE_CANTOPEN"):
        await SqliteStore.open(tmp_path / "missing" / "store.sqlite")


def index_leaders(db: sqlite_utils.Database) -> None:
    db.table("leaders").create_index(["boot_id"], index_name="by_boot")


def break_half_way(db: sqlite_utils.Database) -> None:
    db.table("leaders").create_index(["beat"], index_name="by_beat")
    raise RuntimeError("half way")


async def test_an_older_store_is_migrated_and_kept_as_it_was_beside(path: Path) -> None:
    await make_store(path)
    opened(path, [*schema.MIGRATIONS, index_leaders]).close()
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone() == (schema.FORMAT + 1,)
    assert connection.execute("SELECT count(*) FROM leaders").fetchone() == (500,)
    indexes = sqlite_utils.Database(connection).table("leaders").indexes
    assert "by_boot" in {index.name for index in indexes}
    connection.close()
    backup = sqlite3.connect(path.with_name(f"store.sqlite.format-{schema.FORMAT}"))
    assert backup.execute("PRAGMA user_version").fetchone() == (schema.FORMAT,)
    assert backup.execute("SELECT count(*) FROM leaders").fetchone() == (500,)
    backup.close()


async def test_a_migration_that_fails_leaves_the_format_before_it(path: Path) -> None:
    await make_store(path)
    with pytest.raises(RuntimeError, match="half way"):
        opened(path, [*schema.MIGRATIONS, index_leaders, break_half_way])
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone() == (schema.FORMAT + 1,)
    names = {index.name for index in sqlite_utils.Database(connection).table("leaders").indexes}
    assert "by_boot" in names
    assert "by_beat" not in names
    connection.close()
    opened(path, [*schema.MIGRATIONS, index_leaders, index_leaders_again]).close()


def index_leaders_again(db: sqlite_utils.Database) -> None:
    db.table("leaders").create_index(["beat"], index_name="by_beat")


def test_a_new_store_is_made_in_the_newest_format_without_migrating(path: Path) -> None:
    connection = opened(path, [*schema.MIGRATIONS, break_half_way])
    assert connection.execute("PRAGMA user_version").fetchone() == (schema.FORMAT + 1,)
    connection.close()


async def test_what_was_committed_is_there_after_reopening(path: Path) -> None:
    store = await SqliteStore.open(path)
    (version,) = await store.commit([Put(TopicNameRow("a", 1))])
    id_ = await store.next_id()
    await store.close()
    store = await SqliteStore.open(path)
    found = await store.read(TopicNameRow, ("a",))
    assert found is not None
    assert found.version == version
    assert await store.commit([Put(TopicNameRow("a", 2))]) > [version]
    assert await store.next_id() > id_
    await store.close()


async def test_the_blocks_of_the_log_are_allocated_at_the_start(path: Path) -> None:
    store = await SqliteStore.open(path)
    await store.commit([Put(LeaderRow(1, b"", 1, 0))])
    log = path.with_name("store.sqlite-wal").stat()
    assert log.st_blocks * 512 >= STORE_WAL_BYTES_KEPT
    await store.close()


async def test_a_store_opens_without_room_for_its_log(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    store = await SqliteStore.open(path)
    assert await store.scan(LeaderRow) == []
    await store.close()
