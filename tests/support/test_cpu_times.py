from types import SimpleNamespace
from typing import Any, Literal

import pytest

from support import cpu_times
from support.cpu_times import REASON, SPENT, USUAL_S_MAX, CpuTimes

Phase = Literal["setup", "call", "teardown"]


@pytest.fixture(autouse=True)
def sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_times, "FULL", False)


def is_named_after(phase: Phase, spent_s: float, **said: object) -> bool:
    times = CpuTimes(stand_in())
    facts = [(SPENT, spent_s), *said.items()]
    times.pytest_runtest_logreport(
        pytest.TestReport("a.py::t", ("", 0, ""), {}, "passed", None, phase, user_properties=facts)
    )
    return times._unexplained == [(spent_s, "a.py::t")]


def stand_in(**facts: object) -> Any:  # noqa: ANN401 # stands in for what pytest makes
    return SimpleNamespace(**facts)


def test_a_test_that_spends_too_much_without_a_reason_is_named() -> None:
    assert is_named_after("call", USUAL_S_MAX + 0.1)


def test_with_a_reason_in_little_time_or_for_what_others_share_none_is_named() -> None:
    assert not is_named_after("call", USUAL_S_MAX + 0.1, **{REASON: "a lease has to end"})
    assert not is_named_after("call", USUAL_S_MAX - 0.1)
    assert not is_named_after("setup", USUAL_S_MAX + 0.1)


def test_time_is_that_of_the_process_and_of_the_children_that_it_waited_for() -> None:
    times = CpuTimes(stand_in())
    times.pytest_collection_finish()
    began_s = cpu_times._spent_s()
    while cpu_times._spent_s() < began_s + 0.02:
        pass
    assert 0.02 <= round(times._since_mark_s(), 6) < 1
