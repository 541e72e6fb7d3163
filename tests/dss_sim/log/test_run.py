"""Seeds: that they hold, that they repeat, and that a failing one is made small."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from dss_sim.log.__main__ import SIMULATOR, described
from dss_sim.log.acts import (
    ADOPTS_FROM,
    JUMPS_FROM,
    Act,
    Adopt,
    Arm,
    Grow,
    Jump,
    Kill,
    MakeRoom,
    MakeTopic,
    Numbered,
    Plan,
    PowerLoss,
    Repeat,
    Retain,
    Roll,
    Send,
    Sending,
    Stop,
    Together,
    Trim,
    drawn,
)
from dss_sim.log.adoptions import planned
from dss_sim.log.faults import NEEDS_ROOM, SYNCS
from dss_sim.log.run import Outcome, run, run_seed
from dss_sim.log.shrinking import shrunk
from dss_sim.seeds import outcomes
from dssd.log.recent_sequences import FirstAnswer
from dssd.log.recovery import judge_segment, open_log
from dssd.log.recovery.topic import TopicRecovery
from dssd.log.segment.file import SegmentWriter
from dssd.log.sequences import Producers
from dssd.log.write.writer_thread import WriterThread
from dssd.log.writer_messages import WriterTopic
from support.proof_share import share

SEEDS = share(3, 200)
AT_A_TIME = share(3, 5)
REPEATED = share(2, 12)

ONCE_FAILED = {
    5: "a start forgot what producers had sent with a file of which all was moved on",
    38: "append times began anew after a start, where retention had taken all records",
    388: "the judge held a file that held nothing against a retention that took nothing",
    475: "append times fell after a start, where retention had taken what was adopted last",
    517: "the judge wanted an answer for a frame that the power took before its topic was sealed",
    1109: "a start did not learn what a producer had stored again after it was forgotten",
    1389: "the judge took a torn copy of a forgotten frame for damage without a cause",
    1580: "the judge wanted a file gone by age that a roll under way had just begun",
    3111: "the judge forgot the place of a frame that had rotted and that the log still answered",
    3479: "the judge took frames for refused that had been sent again",
    4003: "a start took a file for durable to its end, because of a later row without a file",
    200012: "a start kept the row of a file that never came to be, so as to forget no producer",
}
"""Seeds that found a defect of ours, and the defect. Their plans may have changed since."""


@pytest.mark.slow("many seeds")
@pytest.mark.parametrize("first", range(0, SEEDS, AT_A_TIME))
def test_every_rule_holds_in_seed_after_seed(first: int) -> None:
    failed = [seed for seed, _, failed in outcomes(SIMULATOR, first, AT_A_TIME, 1) if failed]
    assert not failed, described(shrunk(run_seed(failed[0])))


@pytest.mark.parametrize("seed", list(ONCE_FAILED)[:: share(3, 1)])
def test_a_seed_that_once_failed_holds(seed: int) -> None:
    outcome = run_seed(seed, states=share(4, 40))
    assert outcome.violation is None, described(outcome)


def test_a_seed_gives_the_same_steps_and_facts_each_time() -> None:
    digests = [run_seed(seed, states=2).digest for seed in range(REPEATED)]
    assert digests == [run_seed(seed, states=0).digest for seed in range(REPEATED)]
    assert len(set(digests)) == REPEATED


def test_seeds_reach_every_kind_of_act() -> None:
    kinds = {type(one.act) for seed in range(60) for one in planned(seed).acts}
    assert {Arm, Kill, MakeTopic, PowerLoss, Repeat, Retain, Roll, Send, Stop, Trim} <= kinds


def test_the_clock_moves_in_some_seeds_and_other_acts_keep_their_numbers() -> None:
    plans = [planned(seed) for seed in range(60)]
    moving = [plan for plan in plans if any(isinstance(one.act, Jump) for one in plan.acts)]
    assert 20 <= len(moving) < len(plans)
    for plan in plans:
        others = [one.number for one in plan.acts if one.number < JUMPS_FROM]
        assert others == list(range(len(others)))


def test_frames_are_adopted_in_some_seeds_and_other_acts_stay_as_they_are() -> None:
    adopting = 0
    for seed in range(60):
        plan, own = planned(seed), drawn(seed)
        kept = {one.number: one.act for one in plan.acts if one.number < ADOPTS_FROM}
        assert kept.keys() == {one.number for one in own.acts}
        changed = [one.number for one in own.acts if kept[one.number] != one.act]
        for number in changed:
            act = kept[number]
            assert isinstance(act, Together)
            assert any(isinstance(each, Adopt) for each in act.acts)
        adopting += len(kept) < len(plan.acts) or bool(changed)
    assert 10 <= adopting < 50


def plan_of(*acts: Act) -> Plan:
    return replace(planned(0), acts=tuple(Numbered(*one) for one in enumerate(acts)))


def frame(producer: int = 0, length: int = 9) -> Send:
    return Send((Sending(0, 0, producer, records=2, length=length),))


def test_a_plan_without_faults_is_lived_to_its_end() -> None:
    outcome = run(
        plan_of(MakeTopic(2), frame(), Roll(0), frame(), Stop(), frame(), Trim(0, 0, 1.0))
    )
    assert outcome.violations == []
    assert outcome.lives == 2
    assert outcome.states > 0


@pytest.mark.parametrize("passing", range(12))
def test_a_roll_that_finds_no_room_costs_no_producer_its_answers(passing: int) -> None:
    """Once retention took the snapshot along that a roll had left beside the file before."""
    full = Arm("full", NEEDS_ROOM, passing, strikes=2)
    made = (MakeTopic(1), frame(0), full, Roll(0), MakeRoom(), frame(1))
    outcome = run(plan_of(*made, Trim(0, 0, 1.0), Retain(0, 1, None), Kill(), Repeat(0, 0, 0, 0)))
    assert outcome.violation is None, described(outcome)


# Each of these rules is broken by the log itself, so a log with a bug shows it.


def broken(*acts: Act, states: int = 40) -> Outcome:
    outcome = run(plan_of(MakeTopic(1), *acts), states)
    assert outcome.violation is not None
    return outcome


def test_an_answer_before_the_sync_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SegmentWriter, "sync", lambda self: None)
    outcome = broken(frame())
    assert outcome.violation is not None
    assert outcome.violation.rule == "acked"
    assert outcome.where is not None
    assert outcome.where.crash is not None


def test_an_answer_after_the_disk_failed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def deaf(sync: Callable[[SegmentWriter], None]) -> Callable[[SegmentWriter], None]:
        def synced(self: SegmentWriter) -> None:
            try:
                sync(self)
            except OSError:
                return

        return synced

    monkeypatch.setattr(SegmentWriter, "sync", deaf(SegmentWriter.sync))
    outcome = broken(frame(), Arm("eio", SYNCS, 0, 1), frame(), states=0)
    assert [one.rule for one in outcome.violations] == ["answers"]


def test_a_repeat_that_is_stored_again_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(
        self: Producers, partition: int, producer: bytes, sequence: int
    ) -> FirstAnswer | None:
        return None

    monkeypatch.setattr(Producers, "answer", unknown)
    outcome = broken(frame(), Repeat(0, 0, 0, 0), states=0)
    assert [one.rule for one in outcome.violations] == ["repeats"]


def test_a_log_that_does_not_start_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise ValueError(arguments)

    monkeypatch.setattr(judge_segment, "judge", refuse)
    outcome = broken(frame(), Kill(), frame(), states=0)
    assert [one.rule for one in outcome.violations] == ["starting"]


def test_files_that_are_left_without_a_row_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_log, "_quarantine_strays", lambda *arguments: None)
    outcome = broken(*(frame(), Kill(), frame()) * 3)
    assert outcome.violation is not None
    assert outcome.violation.rule == "files"


def test_a_start_that_mends_the_same_again_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = TopicRecovery._finished

    def finished(self: TopicRecovery, *, sealed: bool) -> WriterTopic:
        self._report(self._paths.directory, "torn tail: as ever")
        return usual(self, sealed=sealed)

    monkeypatch.setattr(TopicRecovery, "_finished", finished)
    assert [one.rule for one in broken(frame()).violations] == ["settled"]


def test_a_storage_topic_that_begins_before_the_one_it_follows_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def nothing(self: WriterThread, storage_topic_id: int, begins_us: int) -> None:
        """It has the times of its own clock."""

    monkeypatch.setattr(WriterThread, "begin_at", nothing)
    outcome = broken(Jump(10**9), frame(), Jump(-(10**9)), Grow(0, 2), frame())
    assert [one.rule for one in outcome.violations] == ["times"]


def test_a_failing_run_is_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Producers, "answer", lambda *arguments: None)
    outcome = run(plan_of(MakeTopic(2), frame(1), Roll(0), frame(), frame(1), Repeat(0, 0, 0, 0)))
    small = shrunk(outcome)
    assert small.violation is not None
    assert outcome.violation is not None
    assert small.violation.rule == outcome.violation.rule
    assert [type(one.act) for one in small.plan.acts] == [MakeTopic, Send, Repeat]
    assert "make sim-log SEED=0" in described(small)


def test_a_topic_that_grows_again_and_again_keeps_all_its_records() -> None:
    acts = [
        act
        for at in range(4)
        for act in (Jump(10**9), frame(), Jump(-(10**9)), Grow(0, 1 + at % 3), Kill())
    ]
    outcome = run(plan_of(MakeTopic(2), *acts, frame(), Repeat(0, 0, 0, 0)))
    assert outcome.violations == []


def test_what_did_not_fail_is_not_shrunk() -> None:
    with pytest.raises(ValueError, match="did not fail"):
        shrunk(run(plan_of(MakeTopic(1)), states=0))
