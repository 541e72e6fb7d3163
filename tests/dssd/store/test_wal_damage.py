"""A write-ahead log of SQLite with bad bytes: damage, or a commit that was not finished."""

import os
import random
import sqlite3
from pathlib import Path

import pytest

from dss_core.errors import StoreDamaged
from dssd.store.port import Put
from dssd.store.rows import TopicNameRow
from dssd.store.sqlite import SqliteStore
from dssd.store.wal_damage import damage_in
from support.proof_share import share

HEADER_BYTES = 32
FRAME_BYTES = 24 + 4_096
SECTOR_BYTES = 512
COMMITS = 12
ROW_BYTES = 3_000
"""So that a commit takes several pages."""


def log_of(directory: Path, commits: int = COMMITS) -> tuple[bytes, list[int]]:
    """A log with so many commits, and where each of them ends."""
    path = directory / "store.sqlite"
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("CREATE TABLE rows (number INTEGER PRIMARY KEY, text BLOB)")
        log = path.with_name("store.sqlite-wal")
        ends = [log.stat().st_size]
        for _ in range(commits):
            connection.execute("INSERT INTO rows (text) VALUES (?)", (os.urandom(ROW_BYTES),))
            ends.append(log.stat().st_size)
        return log.read_bytes(), ends
    finally:
        connection.close()


def flipped(log: bytes, position: int, bit: int = 0) -> bytes:
    changed = bytearray(log)
    changed[position] ^= 1 << bit
    return bytes(changed)


def test_a_log_without_a_bad_byte_is_not_damaged(tmp_path: Path) -> None:
    log, ends = log_of(tmp_path)
    for kept in (
        log,
        log + bytes(100_000),
        b"",
        bytes(100_000),
        log[: ends[3]],
        log[: ends[3] - 1],
    ):
        assert damage_in(kept) is None


def test_a_flipped_bit_before_the_last_two_commits_is_always_found(tmp_path: Path) -> None:
    log, ends = log_of(tmp_path)
    chance = random.Random(1)
    heads = [
        position
        for at in range(HEADER_BYTES, ends[-3], FRAME_BYTES)
        for position in range(at, at + 24)
    ]
    positions = [
        *range(8, HEADER_BYTES),
        *heads[:: share(5, 1)],
        *(chance.randrange(8, ends[-3]) for _ in range(share(60, 300))),
    ]
    for position in positions:
        changed = flipped(log, position, chance.randrange(8))
        assert damage_in(changed) is not None, position


def test_an_unfinished_commit_is_no_damage_whatever_of_it_arrived(tmp_path: Path) -> None:
    log, ends = log_of(tmp_path)
    chance = random.Random(2)
    for last in range(1, len(ends)):
        start, end = ends[last - 1], ends[last]
        sectors = range(start // SECTOR_BYTES, -(-end // SECTOR_BYTES))
        for before in (bytes(end), chance.randbytes(end)):
            for _ in range(10):
                found = bytearray(log[:end])
                for sector in sectors:
                    low, high = max(start, sector * SECTOR_BYTES), (sector + 1) * SECTOR_BYTES
                    if chance.random() < 0.5:
                        found[low:high] = before[low:high]
                assert damage_in(bytes(found[:end])) is None


def test_what_an_earlier_round_of_the_log_left_is_no_damage(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "new").mkdir()
    old, _ = log_of(tmp_path / "old")
    new, ends = log_of(tmp_path / "new", commits=4)
    chance = random.Random(3)
    for _ in range(200):
        found = bytearray(new[: ends[-1]] + old[ends[-1] :])
        for at in range(ends[-2], ends[-1], SECTOR_BYTES):
            low = max(ends[-2], at // SECTOR_BYTES * SECTOR_BYTES)
            high = min(ends[-1], (at // SECTOR_BYTES + 1) * SECTOR_BYTES)
            if chance.random() < 0.5:
                found[low:high] = old[low:high]
        assert damage_in(bytes(found)) is None


def files_of(path: Path) -> dict[str, bytes]:
    return {suffix: Path(f"{path}{suffix}").read_bytes() for suffix in ("", "-wal")}


def put_files(path: Path, files: dict[str, bytes]) -> None:
    for suffix, content in files.items():
        Path(f"{path}{suffix}").write_bytes(content)


async def test_a_store_with_a_damaged_log_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    source, target = tmp_path / "source.sqlite", tmp_path / "store.sqlite"
    store = await SqliteStore.open(source)
    for number in range(COMMITS):
        await store.commit([Put(TopicNameRow(f"topic {number}", number))])
    files = files_of(source)
    await store.close()
    files["-wal"] = flipped(files["-wal"], HEADER_BYTES + FRAME_BYTES + 2_000)
    put_files(target, files)
    for _ in range(2):
        with pytest.raises(StoreDamaged, match="frame 2 is bad"):
            await SqliteStore.open(target)
    assert files_of(target) == files
