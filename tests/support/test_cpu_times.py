from types import SimpleNamespace
from typing import Any, Literal

import pytest

from support import cpu_times
from support.cpu_times import REASON, SPENT, USUAL_S_MAX, CpuTimes

Phase = Literal["setup", "call", "teardown"]


@pytest.fixture(autouse=True)
def sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_times, "FULL", False)


def exit_code_after(phase: Phase, spent_s: float, **said: object) -> int:
    times, session = CpuTimes(stand_in()), stand_in(exitstatus=pytest.ExitCode.OK)
    facts = [(SPENT, spent_s), *said.items()]
    times.pytest_runtest_logreport(
        pytest.TestReport("a.py::t", ("", 0, ""), {}, "passed", None, phase, user_properties=facts)
    )
    times.pytest_sessionfinish(session)
    return int(session.exitstatus)


def stand_in(**facts: object) -> Any:  # noqa: ANN401 # stands in for what pytest makes
    return SimpleNamespace(**facts)


def test_a_test_that_spends_too_much_without_a_reason_fails_the_run() -> None:
    assert exit_code_after("call", USUAL_S_MAX + 0.1) == pytest.ExitCode.TESTS_FAILED


def test_a_reason_a_little_time_or_what_others_share_fails_nothing() -> None:
    reason = {REASON: "a lease has to end"}
    assert exit_code_after("call", USUAL_S_MAX + 0.1, **reason) == pytest.ExitCode.OK
    assert exit_code_after("call", USUAL_S_MAX - 0.1) == pytest.ExitCode.OK
    assert exit_code_after("setup", USUAL_S_MAX + 0.1) == pytest.ExitCode.OK


def test_time_is_that_of_the_process_and_of_the_children_that_it_waited_for() -> None:
    times = CpuTimes(stand_in())
    times.pytest_collection_finish()
    began_s = cpu_times._spent_s()
    while cpu_times._spent_s() < began_s + 0.02:
        pass
    assert 0.02 <= times._since_mark_s() < 1
