import json
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from dss_bulk.payload_bounds import payloads_fit
from dss_bulk.rejects import Reject
from dss_bulk.row_rule import RowRule
from dss_bulk.rows import checked, records_of
from dss_core.limits import RECORD_BYTES_MAX
from dss_core.routing import key_hash

FILES = ["/in/a.parquet"]
NOW_US = 5


def rows_of(**columns: object) -> pa.Table:
    table = pa.table(columns)
    count = table.num_rows
    table = table.append_column("__file", pa.array([0] * count, pa.int32()))
    return table.append_column("__row", pa.array(range(count), pa.int64()))


def test_a_row_becomes_a_record_with_key_subject_time_and_all_columns_as_json() -> None:
    rows = rows_of(
        origin=["EWR", "JFK"],
        tail=["N1", None],
        at=[datetime(2013, 1, 1, 5, tzinfo=UTC), None],
        delay=[2.5, None],
    )
    rule = RowRule("flights", "tail", "keyless", "flights/{origin}", "at")
    made = records_of(rows, FILES, rule, NOW_US)
    assert made.rejects == []
    table = made.records
    assert table["subject"].to_pylist() == ["flights/EWR", "flights/JFK"]
    assert table["key"].to_pylist() == [b"N1", None]
    assert table["key_hash"].to_pylist() == [key_hash(b"N1"), None]
    assert table["timestamp_us"].to_pylist() == [1_357_016_400_000_000, NOW_US]
    first = json.loads(table["payload"].to_pylist()[0])
    assert first == {"origin": "EWR", "tail": "N1", "at": "2013-01-01T05:00:00+00:00", "delay": 2.5}


def test_one_column_may_be_the_payload_and_subjects_may_be_the_topics_name() -> None:
    made = records_of(rows_of(body=["x", None]), FILES, RowRule("t", payload="body"), NOW_US)
    assert made.records["payload"].to_pylist() == [b"x", b""]
    assert made.records["subject"].to_pylist() == ["t", "t"]
    assert made.records["key"].null_count == 2


def test_values_that_json_does_not_know_have_a_text() -> None:
    rows = rows_of(
        day=[date(2013, 1, 2)], price=[Decimal("1.50")], raw=[b"\xff"], nan=[float("nan")]
    )
    (payload,) = records_of(rows, FILES, RowRule("t"), NOW_US).records["payload"].to_pylist()
    assert json.loads(payload) == {"day": "2013-01-02", "price": "1.50", "raw": "ff", "nan": None}


def test_a_row_that_makes_no_record_is_rejected_with_its_number_and_its_reason() -> None:
    rows = rows_of(
        key=["a", None, "b", "c"],
        where=["x", "x", "+", "y"],
        body=["1", "2", "3", "z" * (RECORD_BYTES_MAX + 1)],
    )
    rule = RowRule("t", "key", "refuse", "t/{where}", None, "body")
    made = records_of(rows, FILES, rule, NOW_US)
    assert made.records["key"].to_pylist() == [b"a"]
    assert [reject.row for reject in made.rejects] == [1, 2, 3]
    assert made.rejects[0] == Reject(FILES[0], 1, "its key key is null")
    assert "wildcard" in made.rejects[1].reason
    assert "bytes" in made.rejects[2].reason


def test_a_row_whose_time_is_none_is_rejected_with_what_it_says() -> None:
    rows = rows_of(at=["2013-01-01T05:00:00Z", "yesterday", None])
    made = records_of(rows, FILES, RowRule("t", time="at"), NOW_US)
    assert made.records["timestamp_us"].to_pylist() == [1_357_016_400_000_000, NOW_US]
    [reject] = made.rejects
    assert reject.row == rows["__row"].to_pylist()[1]
    assert reject.reason.startswith("its at is no time: yesterday")
    [reject] = records_of(rows_of(at=[1.5]), FILES, RowRule("t", time="at"), 0).rejects
    assert "microseconds" in reject.reason


def test_a_rule_survives_the_manifest() -> None:
    rule = RowRule("t", "k", "keyless", "t/{a}", "at", "body", ("at", "k"))
    assert RowRule.from_json(rule.to_json()) == rule
    typed = replace(rule, types=(("k", "int64"),))
    assert RowRule.from_json(typed.to_json()) == typed
    assert set(rule.columns) == {"k", "a", "at", "body"}


def test_a_rule_of_an_older_tool_means_what_it_meant() -> None:
    older = json.loads(RowRule("t", "k").to_json())
    del older["types"]
    assert RowRule.from_json(json.dumps(older)) == RowRule("t", "k", types=None)


COLUMNS: list[pa.Array] = [
    pa.array(["a", None, "\u00e4\x01\N{SNOWMAN}"]),
    pa.array([b"\xff", None, b""]),
    pa.array([1, None, -(1 << 63)]),
    pa.array([0.1, None, float("inf")]),
    pa.array([True, None, False]),
    pa.array([None, None, None]),
    pa.array([-62_135_596_800, None, 253_402_300_799], pa.timestamp("s", "UTC")),
    pa.array([date(1, 1, 1), None, date(9999, 12, 31)], pa.date32()),
]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: str(column.type))
def test_rows_are_checked_without_making_their_payloads(column: pa.Array) -> None:
    rows = rows_of(key=["a", None, "c"], value=column)
    rule = RowRule("t", "key")
    assert payloads_fit(rows, None)
    made = records_of(rows, FILES, rule, NOW_US)
    found = checked(rows, FILES, rule)
    assert (found.records, found.subjects, found.rejects) == (2, {"t"}, made.rejects)


WRONG: list[pa.Array] = [
    pa.array(["x" * (RECORD_BYTES_MAX // 6)]),
    pa.array([b"x" * (RECORD_BYTES_MAX // 2)]),
    pa.array([[1]]),
    pa.array([Decimal("1.5")]),
    pa.array([1 << 62], pa.timestamp("us")),
    pa.array([1], pa.timestamp("ns")),
    pa.array([1], pa.timestamp("us", "Europe/Berlin")),
    pa.array([1 << 30], pa.int32()).cast(pa.date32()),
    pa.Array.from_buffers(pa.utf8(), 1, pa.array([b"\xff"]).buffers()),
]


@pytest.mark.parametrize("column", WRONG, ids=lambda column: str(column.type))
def test_payloads_that_may_be_wrong_are_made_to_know(column: pa.Array) -> None:
    assert not payloads_fit(rows_of(value=column), None)


def test_a_payload_that_is_too_large_is_found_by_a_check() -> None:
    rows = rows_of(key=["a", "b"], body=[b"x", b"x" * RECORD_BYTES_MAX])
    for rule in (RowRule("t", "key", payload="body"), RowRule("t", "key")):
        found = checked(rows, FILES, rule)
        assert found.records == 1
        assert found.rejects == records_of(rows, FILES, rule, NOW_US).rejects
