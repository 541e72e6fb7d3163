"""Stores of every earlier format, opened by this version."""

from dataclasses import fields
from pathlib import Path

import pytest

from dssd.store import schema
from dssd.store.rows import GroupRow, ProgressRow, Row, StreamSetRow, TopicRow
from dssd.store.sqlite import SqliteStore
from support.older_store import LAST_ID, make_store, recorded_tables


@pytest.mark.parametrize("format_", range(1, schema.FORMAT))
async def test_a_store_of_an_older_format_opens_and_keeps_every_row(
    tmp_path: Path, format_: int, some_rows: list[Row]
) -> None:
    path = tmp_path / "store.sqlite"
    rows = make_store(path, format_, some_rows)
    store = await SqliteStore.open(path)
    kinds = {type(row) for row in rows}
    found = [each for kind in kinds for each in await store.scan(kind)]
    assert {each.version: common(each.row, format_) for each in found} == {
        version: common(row, format_) for version, row in enumerate(rows, 1)
    }
    assert await store.next_id() == LAST_ID + 1
    await store.close()
    assert path.with_name(f"store.sqlite.format-{format_}").exists()
    again = await SqliteStore.open(path)
    assert len([each for kind in kinds for each in await again.scan(kind)]) == len(rows)
    await again.close()


def common(row: Row, format_: int) -> dict[str, object]:
    """The values of a row that a table of this format has columns for."""
    table = recorded_tables(format_)[row.TABLE]
    names = [field.name for field in fields(row)]  # type: ignore[arg-type] # every kind is a dataclass
    return {name: getattr(row, name) for name in names if f'"{name}"' in table}


@pytest.mark.parametrize("format_", range(1, 3))
async def test_groups_from_before_protocols_use_the_borrow_protocol(
    tmp_path: Path, format_: int, some_rows: list[Row]
) -> None:
    path = tmp_path / "store.sqlite"
    make_store(path, format_, some_rows)
    store = await SqliteStore.open(path)
    groups = await store.scan(GroupRow)
    assert groups
    assert {found.row.protocol for found in groups} == {"borrow"}
    assert await store.scan(StreamSetRow) == []
    await store.close()


@pytest.mark.parametrize("format_", [1, 10])
async def test_groups_and_topics_from_before_queues_are_plain(
    tmp_path: Path, format_: int, some_rows: list[Row]
) -> None:
    path = tmp_path / "store.sqlite"
    make_store(path, format_, some_rows)
    store = await SqliteStore.open(path)
    groups = [found.row for found in await store.scan(GroupRow)]
    assert {(each.max_deliver, each.backoff_ms, each.queue_records) for each in groups} == {
        (0, "", 0)
    }
    assert {found.row.level for found in await store.scan(TopicRow)} == {0}
    rows = [found.row for found in await store.scan(ProgressRow)]
    assert {(row.retried_count, row.applied_end, row.redriving) for row in rows} == {(0, 0, b"")}
    await store.close()
