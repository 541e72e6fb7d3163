"""Which data a daemon has."""

from pathlib import Path

from dssd.store.memory import MemoryStore
from dssd.store.port import Put
from dssd.store.rows import IncarnationRow
from dssd.store.sqlite import SqliteStore
from dssd.topics.incarnation import INCARNATION_BYTES, incarnation_of


async def test_a_store_keeps_its_incarnation_and_no_two_have_the_same(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "store.sqlite")
    first = (await incarnation_of(store)).incarnation
    await store.close()
    again = await SqliteStore.open(tmp_path / "store.sqlite")
    assert (await incarnation_of(again)).incarnation == first
    await again.close()
    assert len(first) == INCARNATION_BYTES
    assert (await incarnation_of(MemoryStore())).incarnation != first


async def test_one_that_was_drawn_later_counts() -> None:
    store = MemoryStore()
    await incarnation_of(store)
    await store.commit([Put(IncarnationRow(2, b"restored"))])
    assert (await incarnation_of(store)).incarnation == b"restored"
