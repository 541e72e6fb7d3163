"""When ceilings are raised and how far, without a log."""

from hypothesis import given
from hypothesis import strategies as st

from dssd.limits import CEILING_AHEAD_MAX, CEILING_AHEAD_MIN
from dssd.log.ceilings import CEILING_LASTS_S, Ceilings

GROWTH = st.lists(
    st.tuples(st.integers(1, 3 * CEILING_AHEAD_MIN), st.floats(0, 2 * CEILING_LASTS_S))
)


@given(GROWTH)
def test_a_ceiling_that_is_raised_when_it_is_low_stays_above_the_end(
    growth: list[tuple[int, float]],
) -> None:
    ceilings, end, now_s, stored = Ceilings({}), 0, 0.0, 0
    for records, after_s in growth:
        end += records
        now_s += after_s
        if ceilings.is_low(0, end):
            raised = ceilings.raised([end], now_s)
            assert end + CEILING_AHEAD_MIN <= raised[0] <= end + CEILING_AHEAD_MAX
            assert raised[0] >= stored, "an offset below may have been given"
            stored = raised[0]
            ceilings.store(raised)
        assert stored >= end + CEILING_AHEAD_MIN // 2


def test_a_ceiling_rises_further_if_raised_again_soon_and_less_far_after_a_pause() -> None:
    ceilings, end, now_s = Ceilings({}), 0, 0.0

    def room(after_s: float) -> int:
        nonlocal end, now_s
        now_s += after_s
        assert ceilings.is_low(0, end)
        raised = ceilings.raised([end], now_s)
        ceilings.store(raised)
        before, end = end, raised[0]
        return raised[0] - before

    assert room(0) == CEILING_AHEAD_MIN
    soon = [room(CEILING_LASTS_S / 2) for _ in range(12)]
    assert soon[:3] == [CEILING_AHEAD_MIN * factor for factor in (2, 4, 8)]
    assert soon[-1] == CEILING_AHEAD_MAX
    rests = [room(CEILING_LASTS_S * 2) for _ in range(12)]
    assert rests[0] == CEILING_AHEAD_MAX // 2
    assert rests[-1] == CEILING_AHEAD_MIN


def test_only_low_ceilings_are_raised() -> None:
    ceilings = Ceilings({0: 10 * CEILING_AHEAD_MIN})
    assert not ceilings.is_low(0, 5)
    assert ceilings.is_low(2, 5)
    assert ceilings.raised([5, 5, 5], 0) == {2: 5 + CEILING_AHEAD_MIN}
    assert ceilings.raised([5, 5, 5], 0) == {}
    assert (1 in ceilings, 2 in ceilings) == (False, True)


def test_a_ceiling_that_could_not_be_stored_is_raised_again() -> None:
    ceilings = Ceilings({})
    assert ceilings.is_low(0, 5)
    ceilings.raised([5], 0)
    assert ceilings.is_low(0, 5)


def test_after_a_clean_stop_ceilings_are_the_ends() -> None:
    ceilings = Ceilings({0: 7, 1: 100, 3: 0})
    assert ceilings.lowered([7, 40, 9, 2]) == {1: 40, 3: 2}
