from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dss_bulk.copies import copied as copied_of_streams
from dss_bulk.copy_rule import CopyRule
from dss_bulk.tables import with_stream
from dss_core.errors import HopLimit, IllegalArgument
from dss_core.origin import HOP, Source, copied_headers
from dss_core.rows_layout import Headers
from support import bulk_tables

STREAM = "orders/0/3"
RULE = CopyRule(source="orders", target="orders2", job="replay-7", hops_max=3)


def copied(table: pa.Table, stream: str, rule: CopyRule) -> pa.Table:
    return copied_of_streams(with_stream(table, stream), rule)


def table_of(
    headers: Sequence[Headers], subjects: Sequence[str] | None = None, base: int = 5
) -> pa.Table:
    subjects = subjects or ["orders/eu"] * len(headers)
    return bulk_tables.table_of(subjects=subjects, headers=headers, base=base)


def expected(headers: Sequence[Headers], base: int = 5) -> list[list[tuple[str, bytes]]]:
    return [
        list(copied_headers(own, Source(STREAM, base + row, 100 + row), RULE.job, RULE.hops_max))
        for row, own in enumerate(headers)
    ]


name = st.sampled_from(["a", "b", "trace"]) | st.text("xyz", min_size=1, max_size=3)
own_headers = st.lists(st.tuples(name, st.binary(max_size=4)), max_size=3).map(tuple)


@given(st.lists(own_headers, min_size=1, max_size=20), st.integers(0, 5), st.integers(0, 5))
def test_columns_get_the_headers_that_each_record_would_get(
    headers: list[Headers], before: int, behind: int
) -> None:
    other: list[Headers] = [(("other", b"1"),)]
    whole = table_of([*other * before, *headers, *other * behind], base=5)
    cut = whole.slice(before, len(headers))
    own = [pa.array(range(5, 5 + len(headers)), pa.uint64()), *cut.columns[1:6]]
    times = pa.array(range(100, 100 + len(headers)), pa.int64())
    cut = pa.Table.from_arrays([*own, times, cut.columns[-1]], schema=cut.schema)
    assert copied(cut, STREAM, RULE)["headers"].to_pylist() == expected(headers)


def test_copies_of_several_streams_each_name_their_own() -> None:
    tables = [
        with_stream(table_of([(), own], base=base), stream)
        for stream, base, own in (("orders/0/3", 5, ()), ("orders/0/4", 70, (("a", b"1"),)))
    ]
    whole = pa.concat_tables(tables).unify_dictionaries().take([2, 0, 3, 1])
    headers = [dict(row) for row in copied_of_streams(whole, RULE)["headers"].to_pylist()]
    origins = [row["dss-origin"] for row in headers]
    assert origins == [b"orders/0/4@70", b"orders/0/3@5", b"orders/0/4@71", b"orders/0/3@6"]


def test_a_copy_of_a_copy_keeps_the_first_origin_and_counts_its_hops() -> None:
    first = copied(table_of([(("a", b"1"),), ()]), STREAM, RULE)
    again = copied(table_of([tuple(row) for row in first["headers"].to_pylist()]), "x/0/0", RULE)
    for row, headers in enumerate(again["headers"].to_pylist()):
        named = dict(headers)
        assert named["dss-origin"] == f"{STREAM}@{5 + row}".encode()
        assert named["dss-hop"] == b"2"


def test_a_record_that_was_copied_too_often_ends_the_job() -> None:
    with pytest.raises(HopLimit):
        copied(table_of([((HOP, b"3"),)]), STREAM, RULE)


@pytest.mark.parametrize(
    ("template", "subject", "wanted"),
    [
        (None, "orders/eu/de", "orders2/eu/de"),
        (None, "orders", "orders2"),
        (None, "ordersx/eu", "orders2/ordersx/eu"),
        ("fixed/{rest}", "orders/eu", "fixed/eu"),
        ("{target}/{subject}", "orders/eu", "orders2/orders/eu"),
    ],
)
def test_subjects_go_over_to_the_target(template: str | None, subject: str, wanted: str) -> None:
    rule = CopyRule("orders", "orders2", "replay-7", 3, template)
    table = copied(table_of([(), ()], [subject, "orders"]), STREAM, rule)
    assert table["subject"].to_pylist()[0] == wanted


@pytest.mark.parametrize("template", ["{key}", "{", "{subject.x}", "{0}"])
def test_a_broken_template_is_refused_before_any_record(template: str) -> None:
    with pytest.raises(IllegalArgument, match="template"):
        CopyRule("orders", "orders2", "replay-7", 3, template)
