"""A store file that is not as it was written: found, harmless or refused, never silently wrong."""

import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from dss_core.errors import DssError, StoreDamaged
from dss_sim.power_loss.image_files import fast_directory
from dssd.store import integrity, reserve
from dssd.store.database import opened
from dssd.store.keys import key_of
from dssd.store.port import Delete, Put, Versioned
from dssd.store.reserve import Reserve
from dssd.store.rows import KINDS, LeaderRow, Row, TopicNameRow
from dssd.store.transactions import Applied, CommitRequest, IdRequest, Transactions
from support.proof_share import share

SEED = 1
FLIPS = share(80, 4_000)
"""A flip takes some 5 ms."""

Everything = tuple[dict[type[Row], list[Versioned[Row]]], int]


@pytest.fixture
def path(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(reserve, "STORE_PAGES_BYTES_KEPT", 8 << 10)
    monkeypatch.setattr(reserve, "STORE_WAL_BYTES_KEPT", 4 << 10)
    with fast_directory() as directory:
        yield directory / "store.sqlite"


def open_(path: Path) -> Transactions:
    return Transactions(opened(path), Reserve(path))


def put(store: Transactions, *rows: Row) -> None:
    store.let_grow()
    [outcome] = store.apply([CommitRequest(tuple(map(Put, rows)), ())])
    assert isinstance(outcome, Applied)


def fill(path: Path, rows: list[Row]) -> None:
    """A store that was closed in order; some rows were removed, so that pages have gaps."""
    store = open_(path)
    put(store, *rows)
    removed = [Delete(type(row), key_of(row)) for row in rows[::7]]
    store.apply([CommitRequest(tuple(removed), ())])
    store.close()


def everything(store: Transactions) -> Everything:
    """All rows, and the next id."""
    rows = {kind: store.scan(kind, (), None, 1_000) for kind in KINDS}
    [id_] = store.apply([IdRequest()])
    assert isinstance(id_, int)
    return rows, id_


def found(path: Path) -> Everything:
    store = open_(path)
    try:
        return everything(store)
    finally:
        store.close()


def flips(content: bytes) -> Iterator[bytes]:
    """The content with one bit changed, in bytes that carry data."""
    chance = random.Random(SEED)
    places = [place for place, byte in enumerate(content) if byte]
    for place in chance.choices(places, k=FLIPS):
        changed = bytearray(content)
        changed[place] ^= 1 << chance.randrange(8)
        yield bytes(changed)


def put_alone(path: Path, content: bytes) -> None:
    for other in path.parent.glob(f"{path.name}*"):
        other.unlink()
    path.write_bytes(content)


def test_a_flipped_bit_is_found_or_harmless(path: Path, some_rows: list[Row]) -> None:
    fill(path, some_rows)
    content = path.read_bytes()
    wanted = found(path)
    refused = 0
    for changed in flips(content):
        put_alone(path, changed)
        try:
            assert found(path) == wanted
        except DssError:
            refused += 1
    assert refused > FLIPS / 2


def test_a_flipped_bit_in_a_store_that_was_killed_is_found_or_harmless(
    path: Path, some_rows: list[Row]
) -> None:
    """It has no seal; its rows are in the database, for the log was written back."""
    store = open_(path)
    put(store, *some_rows)
    store.write_back()
    content = path.read_bytes()
    wanted = {kind: store.scan(kind, (), None, 1_000) for kind in KINDS}
    store.close()
    for changed in flips(content):
        put_alone(path, changed)
        try:
            assert found(path)[0] == wanted
        except DssError:
            continue


def change(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()


def fill_with_leaders(path: Path) -> None:
    store = open_(path)
    put(store, *(LeaderRow(number, b"", 1, 0) for number in range(100)))
    store.close()


def test_a_row_under_another_key_is_noticed_at_the_start(
    path: Path,
) -> None:
    fill_with_leaders(path)
    change(path, "UPDATE leaders SET group_id = 130 WHERE group_id = 30", "DELETE FROM seal")
    with pytest.raises(StoreDamaged, match=r"the row \(130\) of table leaders is not"):
        open_(path)


# Damage that no checksum of a row can find


def test_a_row_that_vanished_from_a_closed_store_is_noticed(path: Path) -> None:
    fill_with_leaders(path)
    change(path, "DELETE FROM leaders WHERE group_id = 30")
    with pytest.raises(StoreDamaged, match="not those that were there"):
        open_(path)


def test_an_older_row_in_a_closed_store_is_noticed(path: Path) -> None:
    fill_with_leaders(path)
    connection = sqlite3.connect(path)
    query = "SELECT version, checksum FROM leaders WHERE group_id = 30"
    version, checksum = connection.execute(query).fetchone()
    connection.close()
    store = open_(path)
    put(store, LeaderRow(30, b"", 2, 0))
    store.close()
    put_back = f"leader_epoch = 1, version = {version}, checksum = {checksum}"
    change(path, f"UPDATE leaders SET {put_back} WHERE group_id = 30")
    with pytest.raises(StoreDamaged, match="not those that were there"):
        open_(path)


@pytest.mark.parametrize("seal", ["kept", "gone"])
def test_versions_that_fell_behind_the_rows_are_noticed(path: Path, seal: str) -> None:
    fill_with_leaders(path)
    change(
        path,
        "UPDATE sequences SET last = 99 WHERE name = 'versions'",
        *(["DELETE FROM seal"] if seal == "gone" else []),
    )
    connection = sqlite3.connect(path, isolation_level=None)
    integrity.fill(connection, "sequences")
    connection.close()
    with pytest.raises(StoreDamaged, match="version 100, which was not given yet"):
        open_(path)


@pytest.mark.parametrize("name", ["versions", "ids"])
def test_a_sequence_that_is_gone_is_noticed(path: Path, name: str) -> None:
    fill_with_leaders(path)
    change(path, f"DELETE FROM sequences WHERE name = '{name}'", "DELETE FROM seal")
    with pytest.raises(StoreDamaged, match="sequence"):
        open_(path)


# The seal


def seals(path: Path) -> int:
    connection = sqlite3.connect(path)
    (count,) = connection.execute("SELECT count(*) FROM seal").fetchone()
    connection.close()
    return int(count)


def test_a_store_that_is_opened_and_closed_stays_sealed(path: Path) -> None:
    for _ in range(3):
        open_(path).close()
        assert seals(path) == 1


def test_the_first_commit_removes_the_seal_and_no_other_row(path: Path) -> None:
    fill_with_leaders(path)
    store = open_(path)
    put(store, TopicNameRow("a", 1))
    assert not integrity.is_sealed(store._connection)
    put(store, TopicNameRow("b", 1))
    store.close()
    assert seals(path) == 1


def test_a_commit_that_is_rolled_back_leaves_the_seal(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_with_leaders(path)
    store = open_(path)

    def broken(*_: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    with monkeypatch.context() as patched:
        patched.setattr(Transactions, "_save", broken)
        with pytest.raises(sqlite3.OperationalError):
            put(store, TopicNameRow("a", 1))
    assert integrity.is_sealed(store._connection)
    store.close()
    open_(path).close()


def test_a_file_that_may_not_be_written_is_refused_at_once(path: Path) -> None:
    fill_with_leaders(path)
    content = bytearray(path.read_bytes())
    content[18] = 3  # The version that a writer must know.
    put_alone(path, bytes(content))
    with pytest.raises(DssError, match="SQLITE_READONLY"):
        open_(path)
