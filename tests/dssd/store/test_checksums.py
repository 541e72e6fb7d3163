"""The checksum of a row tells any two rows apart."""

import struct
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from xxhash import xxh3_64_intdigest

from dssd.store.checksums import UNFIT, Column, checksum_of, is_sound_of, stored_of
from dssd.store.rows import KINDS, ProgressRow, Row, SegmentRow
from dssd.store.schema import VERSION_COLUMN, columns_of

VALUES: dict[type, st.SearchStrategy[Any]] = {
    int: st.integers(-(2**63), 2**63 - 1),
    bool: st.booleans(),
    str: st.text(max_size=5),
    bytes: st.binary(max_size=5),
}
ANYTHING = st.one_of(st.none(), *VALUES.values(), st.floats(allow_nan=False))
"""What a damaged database may answer for any column."""


def columns_and_version(kind: type[Row]) -> tuple[Column, ...]:
    return (*columns_of(kind), VERSION_COLUMN)


def a_value(column: Column) -> st.SearchStrategy[Any]:
    plain = VALUES[column.type]
    return st.none() | plain if column.optional else plain


def values_of(kind: type[Row]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(*map(a_value, columns_and_version(kind)))


KIND_AND_VALUES = st.sampled_from(KINDS).flatmap(
    lambda kind: st.tuples(st.just(kind), values_of(kind))
)
SOUND = {kind: is_sound_of(kind.TABLE, columns_and_version(kind)) for kind in KINDS}
STORED = {kind: stored_of(kind.TABLE, columns_and_version(kind)) for kind in KINDS}


def fits(is_sound: Callable[..., bool], values: tuple[object, ...]) -> bool:
    try:
        return is_sound(*values)
    except UNFIT:
        return False


def kept(kind: type[Row], values: tuple[Any, ...]) -> tuple[Any, ...]:
    """What is stored of a row with these values, the last of which is its version."""
    return STORED[kind](kind(*values[:-1]), values[-1])


@given(KIND_AND_VALUES)
def test_what_is_stored_of_a_row_is_its_values_and_a_checksum_that_fits(
    drawn: tuple[type[Row], tuple[Any, ...]],
) -> None:
    kind, values = drawn
    stored = kept(kind, values)
    assert stored[:-1] == values
    assert -(2**63) <= stored[-1] < 2**63
    assert fits(SOUND[kind], stored)


def is_same(one: object, other: object) -> bool:
    """As SQLite keeps them: it has no type for a truth value."""
    plain = [int(value) if isinstance(value, bool) else value for value in (one, other)]
    return type(plain[0]) is type(plain[1]) and plain[0] == plain[1]


@given(KIND_AND_VALUES, st.data())
def test_a_single_changed_value_is_noticed_whatever_it_becomes(
    drawn: tuple[type[Row], tuple[Any, ...]], data: st.DataObject
) -> None:
    kind, values = drawn
    stored = kept(kind, values)
    at = data.draw(st.integers(0, len(stored) - 1))
    changed = data.draw(ANYTHING)
    assume(not is_same(changed, stored[at]))
    assert not fits(SOUND[kind], (*stored[:at], changed, *stored[at + 1 :]))


@given(KIND_AND_VALUES, st.data())
def test_values_that_change_places_are_noticed(
    drawn: tuple[type[Row], tuple[Any, ...]], data: st.DataObject
) -> None:
    kind, values = drawn
    stored = list(kept(kind, values))
    one, other = data.draw(
        st.lists(st.integers(0, len(values) - 1), min_size=2, max_size=2, unique=True)
    )
    assume(not is_same(stored[one], stored[other]))
    stored[one], stored[other] = stored[other], stored[one]
    assert not fits(SOUND[kind], tuple(stored))


@given(values_of(ProgressRow), st.integers(0, 10))
def test_bytes_that_move_from_one_value_to_the_next_are_noticed(
    values: tuple[Any, ...], moved: int
) -> None:
    names = [column.name for column in columns_and_version(ProgressRow)]
    ranges, attempts = names.index("ranges"), names.index("attempts")
    stored = list(kept(ProgressRow, values))
    whole = stored[ranges] + stored[attempts]
    assume(moved <= len(whole) and moved != len(stored[ranges]))
    stored[ranges], stored[attempts] = whole[:moved], whole[moved:]
    assert not fits(SOUND[ProgressRow], tuple(stored))


def test_the_same_values_in_another_table_have_another_checksum() -> None:
    columns = columns_and_version(SegmentRow)
    values = (1, 2, "active", 3, 4, 5)
    assert checksum_of("segments", columns)(*values) != checksum_of("fragments", columns)(*values)


def test_the_order_in_which_a_table_has_its_columns_does_not_matter() -> None:
    columns = columns_and_version(SegmentRow)
    values = (1, 2, "active", 3, 4, 5)
    turned = checksum_of("segments", columns[::-1])(*values[::-1])
    assert turned == checksum_of("segments", columns)(*values)


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, "1", 1.0, None])
def test_a_value_that_is_no_64_bit_integer_has_no_checksum(value: object) -> None:
    with pytest.raises(UNFIT):
        kept(SegmentRow, (1, 2, "active", value, 4, 5))


def test_a_checksum_stays_what_it_is_on_disk() -> None:
    # Released formats never change.
    columns = [
        Column("name", str, optional=False),
        Column("bytes", bytes, optional=True),
        Column("limit", int, optional=True),
        Column("age", int, optional=True),
        Column("done", bool, optional=False),
    ]
    words = struct.pack("<7q", 0, 0, -1, True, 1, 2**40, 2)
    by_hand = xxh3_64_intdigest(words + "ü".encode(), xxh3_64_intdigest(b"things")) - 2**63
    assert checksum_of("things", columns)("ü", None, 2**40, None, True) == by_hand
    assert by_hand == 5_893_565_948_867_139_957
