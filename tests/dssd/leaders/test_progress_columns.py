from hypothesis import given
from hypothesis import strategies as st

from dss_core.limits import NAK_DELAY_MS_MAX
from dssd.leaders.progress_columns import (
    packed_attempts,
    packed_delays,
    packed_ranges,
    packed_rests,
    unpacked_attempts,
    unpacked_ranges,
    unpacked_rests,
)
from dssd.machines.attempts import Attempts, Due, Rests

U64 = st.integers(0, (1 << 64) - 1)


@given(st.lists(st.tuples(U64, U64)).map(tuple))
def test_ranges_are_read_back(ranges: tuple[tuple[int, int], ...]) -> None:
    assert unpacked_ranges(packed_ranges(ranges)) == ranges


@given(st.lists(st.tuples(U64, U64, U64)).map(tuple))
def test_attempts_are_read_back(attempts: Attempts) -> None:
    assert unpacked_attempts(packed_attempts(attempts)) == attempts


@given(st.lists(st.tuples(U64, U64, st.builds(Due, U64, U64))).map(tuple))
def test_rests_are_read_back(rests: Rests) -> None:
    assert unpacked_rests(packed_rests(rests), packed_delays(rests)) == rests


def test_rests_of_a_row_of_an_older_format_last_no_longer_than_anybody_may_ask() -> None:
    older = packed_attempts(((1, 2, 70), (3, 4, 80)))
    assert unpacked_rests(older, b"") == (
        (1, 2, Due(70, NAK_DELAY_MS_MAX)),
        (3, 4, Due(80, NAK_DELAY_MS_MAX)),
    )


def test_the_bytes_are_those_of_the_row_format() -> None:
    assert packed_ranges(((1, 2),)) == b"\x01" + bytes(7) + b"\x02" + bytes(7)
    assert packed_ranges(()) == b""
