"""Run seeds, or replay one: ``python -m dss_sim.groups --seeds 10000``.

Exit code 0 if every seed held, 1 if one did not; each failed one is shrunk and printed with its
seed, its fault tape and the command that replays it.
"""

import sys
from pathlib import Path

from dss_sim.groups.history import write_history
from dss_sim.groups.plan import Timed
from dss_sim.groups.run import Outcome, run, run_seed
from dss_sim.groups.shrinking import shrunk
from dss_sim.groups.transcript import Transcript
from dss_sim.seeds import Judged, Simulator, parser_of, run_seeds


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
        print(f"seed {seed}: {outcome.events} events, every invariant held", file=sys.stderr)
        return 0
    print(described(seed, outcome), file=sys.stderr)
    return 1


def described(seed: int, outcome: Outcome) -> str:
    """The violation, the shrunken plan, and the command that replays it."""
    plan = outcome.plan
    clocks = ", ".join(f"{rate / 1e6:.3f}" for rate, _ in plan.clocks)
    lines = [
        f"seed {seed}: {outcome.violation}",
        f"  after {outcome.events} events; replay: make sim SEED={seed}",
        f"  groups {len(plan.groups)}, clients {len(plan.habits)}, clock rates {clocks}",
        f"  producers {plan.producers}, topics of durability os: {sorted(plan.os_topics)}",
        *(f"  limit {each.name} = {each.value}" for each in plan.limits),
        *(f"  {_said(timed)}" for timed in plan.timed),
        *(f"  strike {kind} #{number}" for kind, number in sorted(outcome.struck)),
    ]
    return "\n".join([*lines, outcome.trace] if outcome.trace else lines)


def _said(timed: Timed) -> str:
    return f"{timed.at_us / 1e6:9.6f} s  {timed.kind} {timed.who} {timed.amount}"


def _judge(seed: int) -> Judged:
    outcome = run_seed(seed)
    return Judged(outcome.events, outcome.violation is not None, outcome.history)


def _described(seed: int) -> str:
    return described(seed, shrunk(run_seed(seed)))


SIMULATOR = Simulator(
    "dss_sim.groups", 10_000, "events", chunk_seeds=50, judge=_judge, described=_described
)


if __name__ == "__main__":
    sys.exit(main())
