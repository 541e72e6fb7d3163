"""Seeds: that they hold, that they repeat, and that a failing one is made small."""

from dataclasses import replace

import pytest

from dss_sim.groups.__main__ import SIMULATOR, described
from dss_sim.groups.history import Disturbed
from dss_sim.groups.plan import LOG_CHANGES, LOG_FAULTS, plan_of, unordered_plan_of
from dss_sim.groups.queue_plans import without_queues
from dss_sim.groups.run import run, run_seed
from dss_sim.groups.shrinking import minimised, shrunk
from dss_sim.groups.transcript import Transcript, readable
from dss_sim.seeds import outcomes
from dssd.machines.leader import stream
from dssd.machines.leader.lent_stream import LentStream, StreamState
from dssd.machines.leader.stream_ends import end
from dssd.machines.leader.stream_events import Act, HolderLost
from support.proof_share import only_in_proof, share

SEEDS = share(12, 2_000)
AT_A_TIME = 20

ONCE_FAILED = {
    5: "bad bytes moved a stream on above the end at which it was sealed",
    297: "the offsets of a stream whose only frame could not be read were given again",
    1299: "a member was told of a pause in the step in which its lease ended, and the leader died",
    1630: "a pause of a subscription that ended stopped the next one of its number",
    1689: "the world's client dropped records as it left, and handed out those behind them",
    1929: "a stream that finished left the others out of balance for good",
    2273: "a report to the leader before made a member the holder of what it had let go of",
    2917: "a move that was cancelled, and then asked for once more, was made",
    5033: "a request that came after its borrower's goodbye made a ghost a member for a lease",
    20829: "a restarted daemon lent streams on while a client that stood still was sure of them",
    26423: "the world told the daemon of a cut before a client that stood still could know",
    7866: "the judge did not see that a ping overtook the presentation to a new leader",
    10541: "the judge did not take two deaths of the leaders' host in a row for a disturbance",
    10557: "a session of the world outlived its host, which died while it was taken over",
    101613: "the world's sessions heard of a cut long before clients that did not doubt yet",
    6212: "the judge did not take a removed topic for what an evicted member has to let go of",
    9189: "a record whose rest was over waited for one that the cursor had not passed",
    11400: "a group that stalls at damage was not done with what was filtered before it",
    2230: "an idle leader forgot for whom it kept streams, and that they may have gone on",
    3126: "a pause was called done because its daemon, as it stopped, had ended all sessions",
    3288: "the judge did not know that a new leader cannot tell how far an open grant went",
    9171: "the world's client handed out again what its user had acknowledged meanwhile",
    12200: "the last member of the world left while an operator kept it out, and nobody read",
    12940: "what a group was done with was read, where what came before it was damaged",
    12436: "what the end of a subscription let go out overtook records of the same stream",
    10657: "the judge took a pause that was resumed for done, as the next one took its place",
    16274: "the judge wanted a hand-out counted of which a dead leader was to hear",
    22538: "the world's client handed out again what crossed its acknowledgement on the way",
    14717: "the judge took a move that was cancelled before its holder was asked for a rebalance",
    23709: "the judge knew nobody who became a member and was evicted in one step",
    34988: "the world asked a leader that began of a pause which was resumed by then",
    102973: "the world's log stopped with a batch that it had begun as it stopped",
    202704: "a borrower that was told that it is no member became one by a late request",
    21671: "what was acknowledged while it rested was read again, and could not be",
    30936: "what was unpinned while it was kept for its holder was lent by the next leader",
}
"""Seeds that found a defect of ours, and the defect. Their plans may have changed since."""

QUEUES_ONCE_FAILED = {
    638: "an entry was sent before the dead letters were read that it had become",
    1052: "a move that failed again and again was told to the leader each time",
    1355: "what was to be a dead letter came again while it was moved",
    200181: "a lane that was lent with many moves that were not reported stood still for ever",
    1727: "what waited to be moved and was acknowledged held up its stream",
    100761: "a late ack that settled an entry was not reported",
    9251: "a lane was over while an entry of it was on its way to a queue",
    32511: "a dead letter that was brought back and done before was counted twice",
    201011: "a daemon that stopped lent streams on, of which the next one knew nobody before",
    202425: "the world's operator redrove dead letters while others of their lane came back",
    309462: "a late ack of an entry whose ack wait ran out in a pause was confirmed, and dropped",
    50412: "an entry whose rest ended before its lane was open came again on its way to be dead",
    51216: "an ack in a pause was passed over, for the ack wait of its entry had run out",
    201168: "the world gave the number of a removed storage topic again",
}
"""The same of groups that have queues."""

ORDERED_ONCE_FAILED = {
    195: "a chunk of which something was moved ahead of the cursor was sent whole",
    725: "an entry that was about to go out was copied, and went out twice",
    3926: "an entry whose time came while a copy of it was on its way came from both places",
    7609: "a dead letter that was given up before it was applied left its source where it was",
    13082: "a lane woke without end for a move that it had dropped",
    15360: "what the cursor had met and not passed held it up for ever",
    31798: "a redrive that was made and cancelled within a commit left no word that it was made",
    500167: "the rule did not know that a lane that is re-homed does nothing more of what is asked",
    714352: "what was asked of a closed lane kept a redrive away that this lane waited for",
    705563: "the rule counted the shards that a leaving member had not given back",
    711956: "the judge wanted a lane back whose records could not be read to be moved",
    710913: "what could not be read had the only room of a queue",
    703277: "the world forgot a half of a group as its host died of that",
    704352: "the world's client handed out again what crossed an ack that nobody answers",
}
"""The same of groups that are ordered."""


@pytest.mark.slow("many seeds")
@pytest.mark.parametrize("first", range(0, SEEDS, AT_A_TIME))
def test_every_invariant_holds_in_seed_after_seed(first: int) -> None:
    failed = [seed for seed, _, failed in outcomes(SIMULATOR, first, AT_A_TIME, 1) if failed]
    assert not failed, described(failed[0], shrunk(run_seed(failed[0])))


@pytest.mark.parametrize("seed", list(ONCE_FAILED)[:: share(5, 1)])
def test_seeds_that_once_failed_hold(seed: int) -> None:
    # As they were found: with the limits that the daemon has, and in groups without queues.
    assert run(without_queues(replace(plan_of(seed), limits=()))).violation is None


@pytest.mark.parametrize("seed", list(QUEUES_ONCE_FAILED)[:: share(3, 1)])
def test_seeds_that_once_failed_by_queues_hold(seed: int) -> None:
    assert run(unordered_plan_of(seed)).violation is None


@pytest.mark.parametrize("seed", list(ORDERED_ONCE_FAILED)[:: share(3, 1)])
def test_seeds_that_once_failed_by_order_hold(seed: int) -> None:
    assert run(plan_of(seed)).violation is None


@pytest.mark.parametrize("seed", range(share(1, 30)))
def test_a_seed_runs_twice_to_the_same_history(seed: int) -> None:
    first, second = run_seed(seed), run_seed(seed)
    assert first.history == second.history
    assert first.events == second.events


@only_in_proof
def test_seeds_differ_in_what_happens() -> None:
    kinds = {timed.kind for seed in range(200) for timed in plan_of(seed).timed}
    assert {"crash_daemon", "partition", "freeze_client", "seal_topic", "resubscribe"} <= kinds
    assert LOG_FAULTS.keys() | LOG_CHANGES.keys() <= kinds
    assert {topic for seed in range(50) for topic in plan_of(seed).os_topics} == {0, 1}
    disturbed = [
        any(isinstance(event, Disturbed) for event in run_seed(seed).history) for seed in range(60)
    ]
    assert set(disturbed) == {True, False}


@pytest.fixture
def forgetful_lending(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with a bug: who gives a stream back after its lease ended leaves no doubt."""

    def lose_holder(state: LentStream, event: object) -> tuple[Act, ...]:
        return end(state)

    table = dict(stream.TRANSITIONS)
    table[StreamState.GRANTED, HolderLost] = lose_holder
    monkeypatch.setattr(stream, "TRANSITIONS", table)


@pytest.mark.usefixtures("forgetful_lending")
def test_a_bug_is_found_and_its_run_is_made_small() -> None:
    failing = next(
        outcome
        for outcome in map(run_seed, range(2, 2_000))
        if outcome.violation is not None and len(outcome.plan.timed) > 20
    )
    least = shrunk(failing)
    assert least.violation is not None
    assert failing.violation is not None
    assert least.violation.invariant == failing.violation.invariant
    assert len(least.plan.timed) < len(failing.plan.timed) / 2
    again = run(least.plan)
    assert str(again.violation) == str(least.violation)
    assert "replay: make sim SEED=" in described(failing.plan.seed, least)


def test_minimised_finds_the_parts_that_fail_together() -> None:
    assert minimised(range(100), lambda kept: {13, 57} <= set(kept)) == [13, 57]
    assert minimised(range(5), lambda kept: True) == []


def test_a_transcript_tells_every_event_in_a_line() -> None:
    transcript = Transcript()
    run(plan_of(3), transcript.note)
    assert len(transcript.lines) > 100
    assert all("\n" not in line for line in transcript.lines)
    assert readable(b"ann") == "ann"
    assert readable((1).to_bytes(16)) == "#1"
