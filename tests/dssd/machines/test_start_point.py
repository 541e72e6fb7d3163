import pytest
from hypothesis import given
from hypothesis import strategies as st

from dss_core.errors import IllegalArgument
from dssd.machines.start_point import (
    OFFSET_MAX,
    AtOffset,
    AtTime,
    Earliest,
    Now,
    StartPoint,
    parse_start,
    start_text,
)

NUMBERS = st.integers(0, OFFSET_MAX)
STARTS = st.one_of(st.just(Now()), st.just(Earliest()), NUMBERS.map(AtTime), NUMBERS.map(AtOffset))


@given(STARTS)
def test_a_start_is_read_back_from_its_text(start: StartPoint) -> None:
    assert parse_start(start_text(start)) == start


@pytest.mark.parametrize(
    ("start", "text"),
    [
        (Now(), "now"),
        (Earliest(), "earliest"),
        (AtTime(1_795_000_000_000_000), "@1795000000000000"),
        (AtOffset(7), "=7"),
    ],
)
def test_the_texts_are_those_of_the_group_row(start: StartPoint, text: str) -> None:
    assert start_text(start) == text


@pytest.mark.parametrize(
    "text", ["", "Now", "@", "=", "=-1", "@1.5", "=٣", "=9223372036854775808", "7", "= 7"]
)
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(IllegalArgument):
        parse_start(text)
