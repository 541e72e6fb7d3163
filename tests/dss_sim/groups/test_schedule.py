from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from dss_sim.groups.schedule import Host, Schedule


def host(schedule: Schedule, rate: int = 1_000_000, offset_ms: int = 500) -> Host:
    return Host(schedule, "a", rate=rate, offset_ms=offset_ms)


def happen_all(schedule: Schedule) -> None:
    with suppress(IndexError):
        while True:
            schedule.step()


def test_events_come_by_time_and_then_in_the_order_in_which_they_were_asked_for() -> None:
    schedule, seen = Schedule(), list[str]()
    schedule.after(20, lambda: seen.append("late"))
    schedule.after(10, lambda: seen.append("first"))
    schedule.after(10, lambda: seen.append("second"))
    happen_all(schedule)
    assert seen == ["first", "second", "late"]
    assert schedule.now_us == 20


def test_a_crash_makes_what_was_planned_void_but_not_what_arrives() -> None:
    schedule, seen = Schedule(), list[str]()
    home = host(schedule)
    schedule.after(10, lambda: seen.append("timer"), home)
    schedule.arrive(10, lambda: seen.append("message"), home)
    home.crash()
    happen_all(schedule)
    assert seen == ["message"]


def test_a_frozen_host_takes_what_came_meanwhile_in_order_when_it_thaws() -> None:
    schedule, seen = Schedule(), list[tuple[str, int]]()
    home = host(schedule)
    home.freeze(100)
    home.freeze(50)
    schedule.after(10, lambda: seen.append(("timer", schedule.now_us)), home)
    schedule.arrive(5, lambda: seen.append(("message", schedule.now_us)), home)
    schedule.after(20, lambda: seen.append(("elsewhere", schedule.now_us)))
    happen_all(schedule)
    assert seen == [("elsewhere", 20), ("timer", 100), ("message", 100)]


def test_what_waits_for_a_frozen_host_dies_with_it() -> None:
    schedule, seen = Schedule(), list[str]()
    home = host(schedule)
    home.freeze(100)
    schedule.arrive(5, lambda: seen.append("message"), home)
    schedule.after(10, home.crash)
    happen_all(schedule)
    assert seen == []


@given(
    rate=st.integers(800_000, 1_250_000),
    offset_ms=st.integers(0, 10**6),
    now_us=st.integers(0, 10**9),
    wait_ms=st.integers(0, 10**6),
)
def test_a_clock_shows_the_time_that_was_waited_for_and_not_much_more(
    rate: int, offset_ms: int, now_us: int, wait_ms: int
) -> None:
    schedule = Schedule()
    home = host(schedule, rate, offset_ms)
    schedule.now_us = now_us
    at_ms = home.now_ms() + wait_ms
    schedule.now_us += home.until_us(at_ms)
    assert at_ms <= home.now_ms() <= at_ms + 1


@given(
    rate=st.integers(800_000, 1_250_000),
    offset_ms=st.integers(0, 10**6),
    at_us=st.integers(0, 10**9),
    passed_us=st.integers(0, 10**9),
)
def test_a_clock_tells_how_long_ago_it_showed_a_time(
    rate: int, offset_ms: int, at_us: int, passed_us: int
) -> None:
    schedule = Schedule()
    home = host(schedule, rate, offset_ms)
    schedule.now_us = at_us
    shown_ms = home.now_ms()
    schedule.now_us += passed_us
    # A clock shows a millisecond for 1,250 µs at the slowest.
    assert passed_us <= home.since_us(shown_ms) <= passed_us + 1_251
