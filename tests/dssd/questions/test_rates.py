"""What samples of growing numbers tell."""

import pytest

from dssd.questions.rates import END_SAMPLES_MAX, NO_RATES, Age, EndSamples, RateMeter

SECOND, MINUTE = 1_000, 60_000


def test_a_steady_rate_is_told_from_the_first_sample_on() -> None:
    meter = RateMeter(0)
    assert meter.rates(0) == NO_RATES
    for at_ms in range(5 * SECOND, 2 * MINUTE, 5 * SECOND):
        meter.add(50, at_ms)
        assert meter.rates(at_ms) == pytest.approx((10, 10))


def test_a_rate_that_ends_is_forgotten_over_its_span_without_further_samples() -> None:
    meter = RateMeter(0)
    for at_ms in range(5 * SECOND, 20 * MINUTE, 5 * SECOND):
        meter.add(50, at_ms)
    later = meter.rates(at_ms + MINUTE)
    assert later.minute == pytest.approx(10 / 2.718, rel=0.01)
    assert later.five_minutes == pytest.approx(8.2, rel=0.02)
    assert meter.rates(at_ms + 60 * MINUTE) == pytest.approx((0, 0), abs=0.001)


def test_what_comes_after_a_silence_is_not_spread_over_the_silence() -> None:
    burst, steady = RateMeter(0), RateMeter(0)
    burst.add(600, 10 * MINUTE, 10 * MINUTE - 5 * SECOND)
    for at_ms in range(5 * SECOND, 10 * MINUTE + 1, 5 * SECOND):
        steady.add(600 if at_ms == 10 * MINUTE else 0, at_ms)
    assert burst.rates(10 * MINUTE) == pytest.approx(steady.rates(10 * MINUTE))
    assert burst.rates(10 * MINUTE).minute == pytest.approx(9.6, rel=0.01)


def test_a_number_that_falls_counts_as_nothing_and_two_samples_at_once_as_one() -> None:
    meter = RateMeter(0)
    meter.add(-50, SECOND)
    meter.add(50, SECOND)
    assert meter.rates(SECOND) == NO_RATES


def test_the_age_of_a_record_is_that_of_the_end_that_passed_it() -> None:
    ends = EndSamples(100, 0)
    ends.note(200, 0, 10 * SECOND)
    ends.note(200, 10 * SECOND, 20 * SECOND)
    assert ends.age_of(150, 20 * SECOND, 20 * SECOND) == Age(15 * SECOND, at_least=False)
    assert ends.age_of(100, 20 * SECOND, 20 * SECOND) == Age(20 * SECOND, at_least=False)
    assert ends.age_of(99, 20 * SECOND, 20 * SECOND) == Age(20 * SECOND, at_least=True)
    assert ends.age_of(250, 20 * SECOND, 23 * SECOND) == Age(3 * SECOND, at_least=False)


def test_after_a_silence_records_came_in_the_last_interval_and_not_over_the_silence() -> None:
    ends = EndSamples(0, 0)
    ends.note(10, 0, 5 * SECOND)
    ends.note(20, 600 * SECOND, 605 * SECOND)
    assert ends.age_of(10, 605 * SECOND, 605 * SECOND).ms <= 5 * SECOND


def test_samples_are_bounded_and_stay_dense_where_they_are_new() -> None:
    ends = EndSamples(0, 0)
    for at in range(1, 5_000):
        ends.note(at * 10, (at - 1) * SECOND, at * SECOND)
    assert len(ends._ends) <= END_SAMPLES_MAX
    now_ms = 4_999 * SECOND
    for behind in (1, 10, 1_000, 4_000):
        age = ends.age_of((4_999 - behind) * 10, now_ms, now_ms)
        assert age == Age(pytest.approx(behind * SECOND, rel=0.05), at_least=False)  # type: ignore[arg-type]
