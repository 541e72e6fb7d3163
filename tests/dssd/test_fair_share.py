"""Nobody holds more than is left free."""

import pytest

from dssd.fair_share import fair_level, may_take_more


@pytest.mark.parametrize(
    ("holdings", "level"),
    [
        ([100], 50),
        ([100, 100], 33),
        ([60, 10], 45),
        ([30, 20, 10], 40),
        ([], 100),
        ([10] * 20, 8),
    ],
)
def test_the_level_leaves_as_much_free_but_never_falls_below_the_least(
    holdings: list[int], level: int
) -> None:
    found = fair_level(holdings, 100, 8)
    assert found == level
    left = 100 - sum(min(each, found) for each in holdings)
    assert left >= found or found == 8


def test_peers_that_come_one_after_the_other_each_take_half_of_the_rest() -> None:
    taken, held = 0, []
    for _ in range(4):
        holds = 0
        while may_take_more(holds, taken, 1_024, 8):
            holds, taken = holds + 1, taken + 1
        held.append(holds)
    assert held == [512, 256, 128, 64]


def test_who_holds_little_may_have_more_until_nothing_is_left() -> None:
    assert may_take_more(7, 1_023, 1_024, 8)
    assert not may_take_more(0, 1_024, 1_024, 8)
