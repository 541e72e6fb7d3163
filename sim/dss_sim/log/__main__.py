"""Run seeds, or replay one: ``python -m dss_sim.log --seeds 2000``.

Exit code 0 if every seed held, 1 if one did not; each failed one is shrunk and printed with its
seed, its acts, the crash, and the command that replays it.
"""

import logging
import sys
from functools import partial

from dss_sim.log.run import Outcome, run_seed
from dss_sim.log.shrinking import shrunk
from dss_sim.seeds import Judged, Simulator, parser_of, run_seeds


def main() -> int:
    """Parse the arguments and run."""
    arguments = parser_of(SIMULATOR, __doc__).parse_args()
    if arguments.seed is not None:
        SIMULATOR.prepare()
        return replay(arguments.seed)
    return run_seeds(SIMULATOR, arguments.first, arguments.seeds, arguments.jobs)


def replay(seed: int) -> int:
    """Print what the run of a seed does; if it fails, what the shrunken run does."""
    outcome = run_seed(seed)
    if outcome.violation is not None:
        print(described(shrunk(outcome)), file=sys.stderr)
        return 1
    print("\n".join(acts_of(outcome)))
    print(
        f"seed {seed}: {outcome.lives} lives, {outcome.steps} steps, {outcome.states} crashes, "
        "every rule held",
        file=sys.stderr,
    )
    return 0


def described(outcome: Outcome) -> str:
    """What failed, in which shrunken plan, and how to replay it."""
    seed, where = outcome.plan.seed, outcome.where
    assert where is not None
    crash = "in its own life"
    if where.crash is not None:
        crash = f"the power goes after step {where.crash.after}, kept: {where.crash.how}"
    return "\n".join(
        [
            *(f"seed {seed}: {violation}" for violation in outcome.violations[:3]),
            f"  {crash}; after {where.cycle} losses of power; replay: make sim-log SEED={seed}",
            *(f"  {line}" for line in acts_of(outcome)),
            *(f"  step: {step}" for step in where.last),
        ]
    )


def acts_of(outcome: Outcome) -> list[str]:
    """Settings and acts, a line each."""
    plan = outcome.plan
    return [repr(plan.settings), *(f"{one.number:3} {one.act}" for one in plan.acts)]


def _judge(seed: int) -> Judged:
    outcome = run_seed(seed)
    return Judged(outcome.states, outcome.violation is not None, outcome.digest)


def _described(seed: int) -> str:
    return described(shrunk(run_seed(seed)))


SIMULATOR = Simulator(
    "dss_sim.log",
    2_000,
    "crashes",
    chunk_seeds=10,
    judge=_judge,
    described=_described,
    # The log warns of a full disk, which is what is asked for here.
    prepare=partial(logging.disable, logging.CRITICAL),
)


if __name__ == "__main__":
    sys.exit(main())
