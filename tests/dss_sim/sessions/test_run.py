"""Seeds: that they hold, that they repeat, and that a failing one is made small."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from dss_sim.groups.history import Disturbed, Ended, Event, HandedOut
from dss_sim.groups.transcript import Transcript
from dss_sim.seeds import outcomes
from dss_sim.sessions.__main__ import SIMULATOR, described
from dss_sim.sessions.plan import plan_of, plan_without_programs
from dss_sim.sessions.program_plan import OF_PROGRAMS, WAYS, programs_of
from dss_sim.sessions.run import Outcome, run, run_seed, shrunk
from dss_sim.sessions.takers import WAYS as TAKEN
from dssd.sessions import sessions
from dssd.store.rows import SessionRow
from support.proof_share import only_in_proof, share

SEEDS = share(3, 400)
AT_A_TIME = share(3, 5)

ONCE_FAILED = {
    92: "a group that was removed on a full disk ended the connections of its members",
    130: "a clean start on a full disk left what the old session owned for ever",
    498: "a session that expired in part, for the daemon died, was resumed with the rest",
    662: "clients that came together exceeded the bound of sessions",
    815: "a session that expired in part, for the disk was full, was resumed with the rest",
    155: "a connection was ended by one that a full disk refused",
    6220: "a subscription whose group was removed while it rested stayed for ever",
    7321: "the group of a private subscription that a full disk refused stayed without it",
    5256: "the world cut a client off after heal, which nobody let come back",
    9372: "the world's client took the id of its new session for one that is not there",
    14213: "the judge took a call for alive that waited for a slow disk to end",
    14648: "a user skipped what it dropped, for it took what came after it had left",
    6090: "the judge took a client for refused without reason as the bound was just being left",
    7691: "a silent client was answered for before it would ask, in an eviction's shortest grace",
    8249: "the world's client took what it heard late of its old session for the new one",
    879: "a condition swallowed a cancellation: the call of a client that was taken over hung",
}
"""Seeds that found a defect of ours, and the defect. Their plans may have changed since."""

ONCE_FAILED_WITH_PROGRAMS = {
    13: "`run` handed out what came again though the ack of before was durable by then",
    20: "a handler that refused what it had acknowledged left its key waiting for ever",
    2194: "what cancelled handlers had waited for the ack wait, and their key did not",
    11449: "the world did not know that a client had asked after a silence, and does not so soon",
    7741: "who left was told so before that was durable, and a full disk then kept the rest",
    4120: "the judge of turns took only killed processes for clients that vanished with a record",
    4533: "a handler of the session before ended the chain of a grant of the same number",
    7620: "a delay that a user chose after the ack wait ran out was forgotten",
    9212: "the judge took the later answer for the newer connection where two began at once",
    5890: "`run` handed out after a stand-still though the loss of its connection had been read",
}


@pytest.mark.slow("many seeds")
@pytest.mark.parametrize("first", range(0, SEEDS, AT_A_TIME))
def test_every_invariant_holds_in_seed_after_seed(first: int) -> None:
    failed = [seed for seed, _, failed in outcomes(SIMULATOR, first, AT_A_TIME, 1) if failed]
    assert not failed, described(failed[0], shrunk(run_seed(failed[0])))


@pytest.mark.parametrize("seed", list(ONCE_FAILED)[:: share(7, 1)])
def test_seeds_that_once_failed_hold(seed: int) -> None:
    # As they were found: with the limits that the daemon has, and without programs.
    assert run(replace(plan_without_programs(seed), limits=())).violation is None


@pytest.mark.parametrize("seed", list(ONCE_FAILED_WITH_PROGRAMS)[:: share(4, 1)])
def test_seeds_whose_programs_once_failed_hold(seed: int) -> None:
    outcome = run_seed(seed)
    assert outcome.violation is None
    programs = {f"p{at}" for at, _ in enumerate(plan_of(seed).programs)}
    told = [event for event in outcome.history if isinstance(event, HandedOut)]
    theirs = Counter(type(each) for each in told if each.member.partition(".")[0] in programs)
    assert theirs[HandedOut] > 40


@only_in_proof
@pytest.mark.parametrize("seed", range(12))
def test_a_seed_runs_twice_to_the_same_history(seed: int) -> None:
    first, second = run_seed(seed), run_seed(seed)
    assert first.history == second.history
    assert first.steps == second.steps


@only_in_proof
def test_a_seed_runs_to_the_same_history_in_another_process() -> None:
    program = (
        "from hashlib import sha256; from dss_sim.sessions.run import run_seed;"
        "told = [repr(run_seed(seed).history).encode() for seed in range(5)];"
        "print([sha256(each).hexdigest() for each in told])"
    )
    told = [
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    ]
    assert told[0] == told[1]


@only_in_proof
def test_seeds_differ_in_what_happens() -> None:
    kinds = Counter(timed.kind for seed in range(300) for timed in plan_of(seed).timed)
    wanted = {"vanish", "intrude", "crash_at_step", "crash_at_expiry", "fill_disk", "wall", "stop"}
    wanted |= OF_PROGRAMS.keys()
    assert wanted <= kinds.keys()
    histories = [run_seed(seed).history for seed in range(40)]
    disturbed = [
        any(isinstance(event, Disturbed) for event in each[: each.index(judged_at(each))])
        for each in histories
    ]
    assert set(disturbed) == {True, False}
    handed = [sum(isinstance(event, HandedOut) for event in each) for each in histories]
    assert sum(count > 20 for count in handed) > 20


def test_programs_take_records_in_every_way() -> None:
    drawn = {each.way for seed in range(50) for each in programs_of(seed, calm=False)}
    assert drawn == set(WAYS) == {"run", *TAKEN}


def judged_at(history: tuple[Event, ...]) -> Event:
    """Where it is asked what must have happened; the daemon is stopped only after it."""
    return next(event for event in history if isinstance(event, Ended))


def failing(change: Callable[[], None]) -> Outcome:
    change()
    found = (run_seed(seed) for seed in range(200))
    return next(outcome for outcome in found if outcome.violation is not None)


@only_in_proof
def test_a_bug_is_found_and_its_run_is_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Expiry by the wall clock's date, whatever the monotonic clock says."""

    def by_the_wall(row: SessionRow) -> int:
        return 1_000

    found = failing(lambda: monkeypatch.setattr(sessions, "kept_ms", by_the_wall))
    least = shrunk(found)
    assert least.violation is not None
    assert found.violation is not None
    assert least.violation.invariant == found.violation.invariant
    assert len(least.plan.timed) < len(found.plan.timed)
    assert str(run(least.plan).violation) == str(least.violation)
    assert "replay: make sim-sessions SEED=" in described(found.plan.seed, least)


def test_a_run_that_did_not_fail_is_not_made_small() -> None:
    with pytest.raises(ValueError, match="did not fail"):
        shrunk(run_seed(0))


def test_a_transcript_tells_what_happened() -> None:
    transcript = Transcript()
    run(plan_of(3), transcript.note)
    assert len(transcript.lines) > 100
    assert any("SessionRow" in line for line in transcript.lines)
