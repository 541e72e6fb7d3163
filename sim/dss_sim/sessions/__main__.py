"""Run seeds, or replay one: ``python -m dss_sim.sessions --seeds 3000``.

Exit code 0 if every seed held, 1 if one did not; each failed one is shrunk and printed with its
seed and the command that replays it.
"""

import sys
from pathlib import Path

from dss_sim.groups.history import write_history
from dss_sim.groups.transcript import Transcript
from dss_sim.seeds import Judged, Simulator, parser_of, run_seeds
from dss_sim.sessions.run import Outcome, run, run_seed, shrunk


def main() -> int:
    """Parse the arguments and run."""
    parser = parser_of(SIMULATOR, __doc__)
    parser.add_argument("--history", type=Path, help="of a replay: write what observers saw here")
    arguments = parser.parse_args()
    if arguments.seed is not None:
        return replay(arguments.seed, arguments.history)
    return run_seeds(SIMULATOR, arguments.first, arguments.seeds, arguments.jobs)


def replay(seed: int, history: Path | None = None) -> int:
    """Print the events of a seed's run; if it fails, those of the shrunken run."""
    outcome = run_seed(seed)
    if outcome.violation is not None:
        outcome = shrunk(outcome)
    transcript = Transcript()
    run(outcome.plan, transcript.note)
    if history is not None:
        write_history(history, outcome.history)
    print("\n".join(transcript.lines))
    if outcome.violation is None:
        print(f"seed {seed}: {outcome.steps} steps, every invariant held", file=sys.stderr)
        return 0
    print(described(seed, outcome), file=sys.stderr)
    return 1


def described(seed: int, outcome: Outcome) -> str:
    """What failed, in which shrunken plan, and how to replay it."""
    lines = [
        f"seed {seed}: {outcome.violation}",
        f"  after {outcome.steps} steps; replay: make sim-sessions SEED={seed}",
        *(f"  limit {each.name} = {each.value}" for each in outcome.plan.limits),
        *(
            f"  {timed.at_us / 1e6:9.6f} s  {timed.kind} {timed.who} {timed.amount}"
            for timed in outcome.plan.timed
        ),
    ]
    return "\n".join([*lines, outcome.trace] if outcome.trace else lines)


def _judge(seed: int) -> Judged:
    outcome = run_seed(seed)
    return Judged(outcome.steps, outcome.violation is not None, outcome.history)


def _described(seed: int) -> str:
    return described(seed, shrunk(run_seed(seed)))


SIMULATOR = Simulator(
    "dss_sim.sessions", 3_000, "steps", chunk_seeds=10, judge=_judge, described=_described
)


if __name__ == "__main__":
    sys.exit(main())
