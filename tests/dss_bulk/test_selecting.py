import pytest

from dss_bulk.selecting import selected
from dss_bulk.selection import Selection
from dss_core.filters import TopicFilter
from support.bulk_tables import table_of

TABLE = table_of(
    subjects=["orders/eu", "orders/us", "orders/eu/de", "orders/eu"],
    keys=[b"a", None, b"a", b"b"],
    headers=[(), (("x", b"1"), ("x", b"2")), (("x", b"2"),), (("y", b"2"),)],
    append_times_us=[10, 20, 30, 40],
)


@pytest.mark.parametrize(
    ("selection", "offsets"),
    [
        (Selection(), [0, 1, 2, 3]),
        (Selection(subject=TopicFilter.parse("orders/eu/#")), [0, 2, 3]),
        (Selection(key=b"a"), [0, 2]),
        (Selection(headers=(("x", b"2"),)), [1, 2]),
        (Selection(headers=(("x", b"1"), ("x", b"2"))), [1]),
        (Selection(append_from_us=20, append_until_us=40), [1, 2]),
        (Selection(subject=TopicFilter.parse("+/eu"), key=b"b", headers=(("y", b"2"),)), [3]),
        (Selection(key=b"none"), []),
    ],
)
def test_a_record_is_taken_if_every_condition_holds(
    selection: Selection, offsets: list[int]
) -> None:
    assert selected(TABLE, selection)["offset"].to_pylist() == offsets
    cut = TABLE.slice(1)
    assert selected(cut, selection)["offset"].to_pylist() == [each for each in offsets if each]
