"""Live, measure, report: ``python -m dss_sim.scale``."""

import argparse
import sys

from rich.progress import Progress

from dss_sim.scale.life import FAULTS_COUNT, lived
from dss_sim.scale.report import costs_table, figures_table
from dss_sim.scale.step_costs import MEMBERS, STREAMS, measured
from dss_sim.scale.world import plan_of, scaled


def main(arguments: list[str] | None = None) -> int:
    """Parse the arguments and print both tables.

    Raises:
        Violation: something does not hold in the world.
    """
    given = parsed(arguments)
    plan = plan_of(given.factor, given.seed, given.minutes)
    sizes = [
        (scaled(streams, given.factor), scaled(members, given.factor))
        for streams in STREAMS
        for members in MEMBERS
    ]
    with Progress(disable=not sys.stderr.isatty()) as progress:
        world = progress.add_task("the world", total=plan.heal_us)
        steps = progress.add_task("steps", total=len(sizes))
        faults = scaled(FAULTS_COUNT, given.factor)
        figures = lived(plan, faults, lambda now_us: progress.update(world, completed=now_us))
        costs = []
        for streams, members in sizes:
            costs.append(measured(streams, members, given.rounds))
            progress.advance(steps)
    print(figures_table(plan, figures), costs_table(costs), sep="\n\n")
    return 0


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(prog="python -m dss_sim.scale", description=__doc__)
    parser.add_argument("--factor", type=float, default=1.0, help="part of the full size")
    parser.add_argument("--minutes", type=float, default=10.0, help="the world's own time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5, help="how often steps are measured")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
