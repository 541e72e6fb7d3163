"""Seeded bugs in the shells, each found by another rule within a few seeds."""

import pytest

from dss_sim.mutants.in_runs import IN_RUNS
from dss_sim.mutants.in_sessions import IN_SESSIONS, JUDGE
from dss_sim.mutants.trying import tried
from support.proof_share import only_in_proof

BY_NAME = {mutant.name: mutant for mutant in IN_SESSIONS}
QUICK = {
    "takeover without a new epoch": "S9",
    "always present": "S13",
    "no grace": "S14",
    "principal not checked": "S16",
    "date from the monotonic clock": "S17",
    "old connection ended too early": "F11",
}
"""Found by the first seeds, and by what."""


@only_in_proof
@pytest.mark.parametrize("name", QUICK)
def test_a_seeded_bug_is_found_by_the_first_seeds(name: str) -> None:
    verdict = tried(BY_NAME[name], firsts=(0,), seeds_max=10)
    assert verdict.is_caught
    assert verdict.invariants == (QUICK[name],)


def test_all_of_them_are_judged_by_this_simulator() -> None:
    assert {mutant.judge for mutant in (*IN_SESSIONS, *IN_RUNS)} == {JUDGE}
