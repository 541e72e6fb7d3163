import pyarrow as pa
import pytest

from dss_bulk.selecting import selected
from dss_bulk.selection import RecordSelection
from dss_bulk.tables import with_encoded_subjects
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
        (RecordSelection(), [0, 1, 2, 3]),
        (RecordSelection(subject=TopicFilter.parse("orders/eu/#")), [0, 2, 3]),
        (RecordSelection(key=b"a"), [0, 2]),
        (RecordSelection(headers=(("x", b"2"),)), [1, 2]),
        (RecordSelection(headers=(("x", b"1"), ("x", b"2"))), [1]),
        (RecordSelection(append_from_us=20, append_until_us=40), [1, 2]),
        (RecordSelection(subject=TopicFilter.parse("+/eu"), key=b"b", headers=(("y", b"2"),)), [3]),
        (RecordSelection(key=b"none"), []),
    ],
)
def test_a_record_is_taken_if_every_condition_holds(
    selection: RecordSelection, offsets: list[int]
) -> None:
    for table in (TABLE, with_encoded_subjects(TABLE)):
        assert selected(table, selection)["offset"].to_pylist() == offsets
        cut = table.slice(1)
        assert selected(cut, selection)["offset"].to_pylist() == [each for each in offsets if each]


def test_a_subject_is_what_the_dictionary_of_its_own_piece_says() -> None:
    pieces = [with_encoded_subjects(table_of(subjects=[name])) for name in ("a/x", "a/y", "a/x")]
    selection = RecordSelection(subject=TopicFilter.parse("a/x"))
    found = selected(pa.concat_tables(pieces), selection)
    assert found["subject"].to_pylist() == ["a/x", "a/x"]
