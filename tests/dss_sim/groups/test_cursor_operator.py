"""The operator of a world: what runs bring of moves, and that they end."""

from dss_sim.groups.cursor_operator import KINDS
from dss_sim.groups.history import Moved
from dss_sim.groups.plan import OPERATED_SHARE, OPERATIONS, plan_of
from dss_sim.groups.run import run
from dss_sim.groups.scenarios import SCENARIOS, spoken
from support.proof_share import only_in_proof

OPERATED = SCENARIOS[50:]


def test_in_a_quarter_of_the_runs_operators_move_cursors_and_think_better_of_it() -> None:
    plans = [plan_of(seed) for seed in range(1_000)]
    kinds = [{timed.kind for timed in plan.timed} & OPERATIONS.keys() for plan in plans]
    operated = [each for each in kinds if "move_cursors" in each]
    assert 0.8 < len(operated) / 1_000 / OPERATED_SHARE < 1.2
    assert set().union(*operated) == OPERATIONS.keys()


def test_scripts_have_moves_of_every_kind_undone_and_cancelled() -> None:
    scripts = [timed for scenario in OPERATED for timed in scenario.plan.timed]
    kinds = {timed.amount for timed in scripts if timed.kind == "move_cursors"}
    assert kinds == set(range(1, len(KINDS) + 1))
    assert {timed.kind for timed in scripts} >= OPERATIONS.keys()


@only_in_proof
def test_moves_of_scripts_are_made_and_some_are_taken_back() -> None:
    moves = [
        event
        for scenario in OPERATED
        for protocol in ("borrow", "lease")
        for event in run(spoken(scenario, protocol).plan).history
        if isinstance(event, Moved)
    ]
    assert len(moves) > 20
    assert any(move.undoes for move in moves)
    assert any(move.dropped and not move.added for move in moves)
    assert any(move.added and not move.dropped for move in moves)
