"""Run seeds, or replay one: ``python -m dss_sim.jobs --seeds 200``.

The first seeds let the daemon die once, at each effect in turn, before it happens and behind it;
the others draw several deaths. Exit code 0 where every seed held, 1 where one did not.
"""

import logging
import sys
import tempfile
from functools import partial
from pathlib import Path

from dss_sim.jobs.world import EFFECTS_MAX, Plan, judged
from dss_sim.seeds import Judged, Simulator, parser_of, run_seeds


def main() -> int:
    """Parse the arguments and run."""
    arguments = parser_of(SIMULATOR, __doc__).parse_args()
    if arguments.seed is None:
        return run_seeds(SIMULATOR, arguments.first, arguments.seeds, arguments.jobs)
    SIMULATOR.prepare()
    violations, _ = _run(arguments.seed)
    print(_described(arguments.seed) if violations else "every rule held", file=sys.stderr)
    return 1 if violations else 0


def planned(seed: int) -> Plan:
    """The plan of a seed."""
    if seed < 2 * EFFECTS_MAX:
        return Plan((seed // 2 + 1,), happens=bool(seed % 2))
    return Plan.of_seed(seed)


def _run(seed: int) -> tuple[list[str], int]:
    with tempfile.TemporaryDirectory(prefix="dss-jobs-") as directory:
        return judged(Path(directory), planned(seed))


def _judge(seed: int) -> Judged:
    violations, _ = _run(seed)
    return Judged(1 + len(planned(seed).deaths), bool(violations), tuple(violations))


def _described(seed: int) -> str:
    violations, _ = _run(seed)
    head = f"seed {seed}: {planned(seed)}; replay: make sim-jobs SEED={seed}"
    return "\n".join([head, *(f"  {each}" for each in violations)])


SIMULATOR = Simulator(
    "dss_sim.jobs",
    400,
    "lives",
    chunk_seeds=5,
    judge=_judge,
    described=_described,
    prepare=partial(logging.disable, logging.CRITICAL),
)


if __name__ == "__main__":
    sys.exit(main())
