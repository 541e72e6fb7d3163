"""Running seeds: all of them, on several processes, some twice."""

import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from dss_sim.seeds import Judge, Judged, Simulator, outcomes, parser_of, run_seeds

FAILS_EVERY = 7


def judge(seed: int) -> Judged:
    return Judged(seed * 10, seed % FAILS_EVERY == 0, seed)


def simulator(judge: Judge = judge) -> Simulator:
    return Simulator("some.world", 50, "events", 3, judge, described=lambda seed: f"seed {seed}!")


def test_every_seed_comes_once_and_in_order_whatever_the_number_of_processes() -> None:
    alone = list(outcomes(simulator(), 1, 20, 1))
    assert alone == [(seed, seed * 10, seed % FAILS_EVERY == 0) for seed in range(1, 21)]
    assert list(outcomes(simulator(), 1, 20, 2)) == alone


def test_a_seed_that_does_not_repeat_is_an_error() -> None:
    traces: Iterator[int] = count()

    def unsteady(seed: int) -> Judged:
        return Judged(1, failed=False, trace=next(traces))

    assert len(list(outcomes(simulator(unsteady), 1, 99, 1))) == 99
    with pytest.raises(AssertionError, match="seed 100 does not repeat"):
        list(outcomes(simulator(unsteady), 1, 100, 1))


def test_what_failed_is_described_and_the_exit_code_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_seeds(simulator(), 1, 15, 1) == 1
    said = capsys.readouterr().out
    assert "seed 7!" in said
    assert "15 seeds, 1,200 events, 2 failed" in said
    assert run_seeds(simulator(), 1, 6, 1) == 0


def test_after_ten_failing_seeds_it_is_enough(capsys: pytest.CaptureFixture[str]) -> None:
    run_seeds(simulator(), 1, 1_000, 1)
    assert capsys.readouterr().out.count("!") == 10


def test_the_number_of_seeds_has_a_default() -> None:
    assert parser_of(simulator(), "Runs.").parse_args([]).seeds == 50
    assert parser_of(simulator(), "Runs.").parse_args(["--seed", "4"]).seed == 4


COPIED = """
import gc, os, sys
from pathlib import Path
from dss_sim.seeds import forked

class Tied:
    # In a circle with itself, and known to a file when it ends.
    def __init__(self, ended):
        self.itself, self.ended = self, ended

    def __del__(self):
        self.ended.write_text(str(os.getpid()))

ended = Path(sys.argv[1])
kept = [Tied(ended)]

def let_go():
    kept.clear()
    gc.collect()

with forked(1) as pool:
    pool.submit(let_go).result()
assert not ended.exists()
let_go()
assert ended.read_text() == str(os.getpid())
"""


def test_a_copy_ends_nothing_that_the_process_had(tmp_path: Path) -> None:
    # A process of its own: to look through all that a run of tests has takes a second.
    subprocess.run([sys.executable, "-c", COPIED, tmp_path / "ended"], check=True)
