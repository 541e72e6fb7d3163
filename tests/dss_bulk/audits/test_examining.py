"""Each finding, in a table that has it."""

from collections.abc import Sequence

import pyarrow as pa
import pytest

from dss_bulk.audits.examining import RangeRead, Rule, Shape, examined
from dss_bulk.audits.partial import Amount, Check, Found
from dss_bulk.selection import RecordSelection
from dss_core.filters import TopicFilter
from dss_core.routing import Router, key_hash, partition_of
from dss_core.rows_layout import Headers
from support.bulk_tables import table_of

STREAM = "orders/0/1"
PARTITIONS = 4


def rule(*, only: str | None = None, partitions: int = 1) -> Rule:
    selection = RecordSelection(subject=None if only is None else TopicFilter.parse(only))
    shapes = {7: Shape(Router.BLOCK, partitions, 1)}
    return Rule((TopicFilter.parse("orders/#"),), shapes, selection)


def read(table: pa.Table, end: int | None = None, partition: int = 0, **told: object) -> RangeRead:
    return RangeRead(STREAM, 7, partition, 0, end or table.num_rows, table, **told)  # type: ignore[arg-type]


def records(
    count: int,
    *,
    keys: Sequence[bytes | None] | None = None,
    origins: Sequence[str | None] = (),
    times_us: Sequence[int] = (),
    subjects: Sequence[str] = (),
) -> pa.Table:
    headers: list[Headers] = [
        () if each is None else (("a", b"1"), ("dss-origin", each.encode())) for each in origins
    ]
    table = table_of(subjects=subjects or ["orders/eu"] * count, keys=keys, headers=headers or None)
    at = table.schema.get_field_index("timestamp_us")
    times = pa.array(times_us or [1] * count, pa.int64())
    return table.set_column(at, "timestamp_us", times)


def without_rows(table: pa.Table, *rows: int) -> pa.Table:
    return table.take([row for row in range(table.num_rows) if row not in rows])


def test_a_range_that_is_as_it_ought_to_be_has_no_finding() -> None:
    table = records(6, keys=[b"a", b"b", None, b"a", b"b", b"a"], times_us=[1, 5, 2, 3, 6, 3])
    found = examined(read(table), rule())
    assert found.found == {}
    assert found.streams == {STREAM: Amount(6, 5 + 6)}
    assert found.keyless == 1
    assert found.keys.counts == {key_hash(b"a"): 3, key_hash(b"b"): 2}
    assert found.keys.names == {key_hash(b"a"): b"a", key_hash(b"b"): b"b"}


def test_offsets_that_nothing_explains_are_gaps() -> None:
    table = without_rows(records(10), 0, 3, 4, 7, 9)
    found = examined(read(table, 10, damaged=((3, 5),), lost=((6, 8),)), rule()).found
    assert found[Check.GAPS] == Found(2, (f"{STREAM} 0..0", f"{STREAM} 9..9"))
    assert found[Check.DAMAGE] == Found(2, (f"{STREAM} 3..4",))
    assert found[Check.LOST] == Found(2, (f"{STREAM} 6..7",))


def test_a_range_without_any_record_is_one_gap() -> None:
    found = examined(read(records(3).slice(0, 0), 3), rule())
    assert found.found == {Check.GAPS: Found(3, (f"{STREAM} 0..2",))}
    assert found.records == 0


def test_what_a_filter_leaves_out_is_no_gap_and_nothing_of_it_is_counted() -> None:
    table = records(4, subjects=["orders/eu", "orders/us", "orders/eu", "orders/us"])
    found = examined(read(table), rule(only="orders/eu"))
    assert found.found == {}
    assert found.records == 2


def test_an_offset_that_comes_twice_is_a_duplicate() -> None:
    table = pa.concat_tables([records(3), records(3).slice(1, 1)])
    found = examined(read(table, 3), rule()).found
    assert found == {Check.DUPLICATES: Found(1, (f"{STREAM}@1 is there twice",))}


def test_a_key_in_another_partition_is_misrouted() -> None:
    keys = [b"k%d" % number for number in range(20)]
    own = [partition_of(Router.BLOCK, key_hash(key), PARTITIONS, 1) for key in keys]
    found = examined(read(records(20, keys=keys), partition=2), rule(partitions=PARTITIONS)).found
    elsewhere = [number for number, partition in enumerate(own) if partition != 2]
    assert found[Check.MISROUTED].count == len(elsewhere)
    assert f"{STREAM}@{elsewhere[0]}" in found[Check.MISROUTED].examples
    keyless: list[bytes | None] = [None] * 3
    found = examined(read(records(3, keys=keyless)), rule(partitions=PARTITIONS)).found
    assert Check.MISROUTED not in found


def test_a_subject_that_no_pattern_meets_is_named_with_its_place() -> None:
    table = records(3, subjects=["orders/eu", "trades/eu", "trades/eu"])
    found = examined(read(table), rule()).found
    assert found == {Check.SUBJECTS: Found(2, (f"trades/eu at {STREAM}@1",))}


def test_a_time_that_falls_counts_for_its_own_key_alone() -> None:
    keys = [b"a", b"b", b"a", b"b", None, None]
    found = examined(read(records(6, keys=keys, times_us=[5, 3, 4, 3, 2, 1])), rule()).found
    assert found == {Check.TIMES: Found(1, (f"{STREAM}@2",))}


@pytest.mark.parametrize(
    ("origins", "keys", "count"),
    [
        (["s/0/0@1", "s/0/0@2", "s/0/0@3"], b"aaa", 0),
        (["s/0/0@2", "s/0/0@1", "s/0/0@3"], b"aba", 0),  # other keys
        (["s/0/0@9", "s/0/1@1", "s/0/0@10"], b"aaa", 0),  # other sources
        (["s/0/0@2", "s/0/0@1", "s/0/0@3"], b"aaa", 1),
        (["s/0/0@9", None, "s/0/0@1"], b"aba", 1),
        (["no origin", "s/0/0@2", "s/0/0@x"], b"aaa", 0),
    ],
)
def test_copies_of_one_key_and_source_rise(
    origins: list[str | None], keys: bytes, count: int
) -> None:
    table = records(3, keys=[bytes([key]) for key in keys], origins=origins)
    found = examined(read(table), rule()).found
    assert found.get(Check.ORDER, Found()).count == count


def test_the_lowest_and_the_highest_origin_of_each_source_are_kept() -> None:
    table = records(4, origins=["s/0/0@5", "s/0/1@9", "s/0/0@7", None])
    found = examined(read(table), rule())
    assert found.orders == {(STREAM, "s/0/0"): (5, 7), (STREAM, "s/0/1"): (9, 9)}
