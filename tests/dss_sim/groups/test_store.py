from contextlib import suppress

from dss_sim.groups.randomness import Randomness
from dss_sim.groups.schedule import Host, Schedule
from dss_sim.groups.store import SimulatedStore, at_once
from dssd.store.port import Absent, PreconditionFailed, Put
from dssd.store.rows import LeaderRow

ROW = LeaderRow(1, b"boot", 1, 0)


def drain(schedule: Schedule) -> None:
    with suppress(IndexError):
        while True:
            schedule.step()


def test_of_two_commits_with_one_precondition_one_is_answered_with_the_failure() -> None:
    schedule = Schedule()
    store = SimulatedStore(schedule, Randomness(1, {}))
    home = Host(schedule, "a", rate=1_000_000, offset_ms=0)
    answers: list[list[int] | PreconditionFailed] = []
    for _ in range(2):
        store.commit(home, [Put(ROW)], [Absent(LeaderRow, (1,))], answers.append)
    assert answers == []
    drain(schedule)
    assert sorted(isinstance(answer, PreconditionFailed) for answer in answers) == [False, True]


def test_what_a_dead_daemon_had_asked_for_is_there_or_not_and_nobody_is_told() -> None:
    made = 0
    for seed in range(40):
        schedule = Schedule()
        store = SimulatedStore(schedule, Randomness(seed, {}))
        home = Host(schedule, "a", rate=1_000_000, offset_ms=0)
        answers: list[object] = []
        store.commit(home, [Put(ROW)], [], answers.append)
        store.crash()
        home.crash()
        drain(schedule)
        assert answers == []
        made += at_once(store.rows.read(LeaderRow, (1,))) is not None
    assert 0 < made < 40
