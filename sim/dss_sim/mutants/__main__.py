"""Try every mutant, or some: ``python -m dss_sim.mutants [NAME...]``.

Prints the table of docs/testing.md as Markdown. Exit code 0 where each mutant was found, 1 where
one survived.
"""

import argparse
import os
import sys
from collections.abc import Iterable

from rich.progress import Progress

from dss_sim.mutants.catalogue import MUTANTS
from dss_sim.mutants.planting import Mutant, mutated
from dss_sim.mutants.trying import SEEDS_MAX, Verdict, tried_all


def main() -> int:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(prog="python -m dss_sim.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="try these only")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seeds", type=int, default=SEEDS_MAX, help="seeds until it survives")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - {mutant.name for mutant in MUTANTS}
    if unknown:
        parser.error(f"no such mutant: {', '.join(sorted(unknown))}")
    chosen = [each for each in MUTANTS if not arguments.names or each.name in arguments.names]
    for mutant in chosen:
        mutated(mutant)
    verdicts = watched(chosen, arguments.jobs, arguments.seeds)
    print(table(verdicts))
    survived = [verdict.mutant.name for verdict in verdicts if not verdict.is_caught]
    if survived:
        print(f"survived: {', '.join(survived)}", file=sys.stderr)
    return 1 if survived else 0


def watched(mutants: list[Mutant], jobs: int, seeds_max: int) -> list[Verdict]:
    """The verdicts in the order of the mutants, with a progress bar where somebody looks."""
    verdicts: dict[str, Verdict] = {}
    with Progress(disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("mutants", total=len(mutants))
        for verdict in tried_all(mutants, jobs, seeds_max):
            verdicts[verdict.mutant.name] = verdict
            progress.advance(task)
            if not verdict.is_caught:
                progress.console.print(f"{verdict.mutant.name} survived", markup=False)
    return [verdicts[mutant.name] for mutant in mutants]


def table(verdicts: Iterable[Verdict]) -> str:
    """The verdicts as Markdown."""
    lines = [
        "| mutant | stands for | caught by | seeds, median (each) |",
        "|---|---|---|---|",
    ]
    for verdict in verdicts:
        mutant = verdict.mutant
        each = ", ".join("none" if found is None else f"{found.seeds}" for found in verdict.found)
        seeds = f"{verdict.seeds} ({each})" if verdict.is_caught else f"survived ({each})"
        caught_by = ", ".join(verdict.invariants)
        lines.append(f"| {mutant.name} | {mutant.stands_for} | {caught_by} | {seeds} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
