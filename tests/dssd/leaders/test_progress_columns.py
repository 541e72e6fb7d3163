from hypothesis import given
from hypothesis import strategies as st

from dssd.leaders.progress_columns import (
    packed_attempts,
    packed_ranges,
    unpacked_attempts,
    unpacked_ranges,
)
from dssd.machines.attempts import Attempts

U64 = st.integers(0, (1 << 64) - 1)


@given(st.lists(st.tuples(U64, U64)).map(tuple))
def test_ranges_are_read_back(ranges: tuple[tuple[int, int], ...]) -> None:
    assert unpacked_ranges(packed_ranges(ranges)) == ranges


@given(st.lists(st.tuples(U64, U64, U64)).map(tuple))
def test_attempts_are_read_back(attempts: Attempts) -> None:
    assert unpacked_attempts(packed_attempts(attempts)) == attempts


def test_the_bytes_are_those_of_the_row_format() -> None:
    assert packed_ranges(((1, 2),)) == b"\x01" + bytes(7) + b"\x02" + bytes(7)
    assert packed_ranges(()) == b""
