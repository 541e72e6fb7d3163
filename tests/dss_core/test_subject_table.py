"""Subject tables: round trip, and nothing but FrameCorrupt for other bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dss_core.errors import FrameCorrupt, IllegalSubject
from dss_core.subject_table import encoded_subject, entries_end, subjects_of, verified_subjects

subjects = st.lists(st.text(st.sampled_from("abé/"), min_size=1, max_size=8), max_size=8)


def table_of(names: list[str]) -> bytes:
    return b"".join(map(encoded_subject, names))


@given(subjects, st.binary(max_size=8))
def test_a_table_gives_back_its_subjects_in_order_and_where_it_ends(
    names: list[str], rest: bytes
) -> None:
    table = table_of(names)
    verified_subjects(table, len(names))
    assert subjects_of(table, len(names)) == tuple(names)
    assert entries_end(b"??" + table + rest, 2, len(names)) == 2 + len(table)


@given(subjects.filter(bool), st.data())
def test_the_end_of_a_table_that_is_cut_short_is_unknown(
    names: list[str], data: st.DataObject
) -> None:
    table = table_of(names)
    cut = data.draw(st.integers(0, len(table) - 1))
    assert entries_end(table[:cut], 0, len(names)) is None
    with pytest.raises(FrameCorrupt):
        subjects_of(table[:cut], len(names))


def test_a_table_larger_than_what_is_kept_reads_the_same() -> None:
    names = [f"{'x' * 200}/{number}" for number in range(100)]
    verified_subjects(table_of(names), 100)
    assert subjects_of(table_of(names), 100) == tuple(names)


@pytest.mark.parametrize("table", [b"\x01\x00+", b"\x00\x00", b"\x01\x00\xff", b"\x01\x00\x07"])
def test_a_table_with_an_illegal_subject_is_corrupt(table: bytes) -> None:
    with pytest.raises(FrameCorrupt):
        verified_subjects(table, 1)


def test_an_illegal_subject_is_not_encoded() -> None:
    with pytest.raises(IllegalSubject):
        encoded_subject("a/+")


@given(st.binary(max_size=40), st.integers(1, 8))
def test_garbage_is_corrupt_or_a_table(garbage: bytes, count: int) -> None:
    try:
        verified_subjects(garbage, count)
    except FrameCorrupt:
        return
    assert table_of(list(subjects_of(garbage, count))) == garbage
