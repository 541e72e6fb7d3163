"""Try every mutant, or some: ``python -m dss_sim.mutants [NAME...]``.

With ``--sample N --turn K`` it tries N of them, different ones at each turn until all were tried,
and from one first seed only. Prints the table of docs/proof/mutants.md as Markdown. Exit code 0 if
each mutant was found, 1 if one survived.
"""

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable

from rich.progress import Progress

from dss_sim.mutants.catalogue import GROUPS, MUTANTS
from dss_sim.mutants.planting import Mutant, mutated
from dss_sim.mutants.sampling import sampled
from dss_sim.mutants.trying import FIRST_SEEDS, SEEDS_MAX, Verdict, tried_all


def main() -> int:
    """Parse the arguments and run."""
    parser = _parser()
    arguments = parser.parse_args()
    unknown = set(arguments.names) - {mutant.name for mutant in MUTANTS}
    if unknown:
        parser.error(f"no such mutant: {', '.join(sorted(unknown))}")
    if arguments.sample is not None and (arguments.names or arguments.sample < 1):
        parser.error("a sample is one mutant or more, and takes no names")
    verdicts = watched(_chosen(arguments), arguments)
    print(table(verdicts))
    survived = [verdict.mutant.name for verdict in verdicts if not verdict.is_caught]
    if survived:
        print(f"survived: {', '.join(survived)}", file=sys.stderr)
    return 1 if survived else 0


def _parser() -> ArgumentParser:
    parser = ArgumentParser(prog="python -m dss_sim.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="try these only")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seeds", type=int, default=SEEDS_MAX, help="seeds until it survives")
    parser.add_argument("--sample", type=int, metavar="N", help="try N, from one first seed only")
    parser.add_argument("--turn", type=int, default=0, metavar="K", help="which sample")
    return parser


def _chosen(arguments: Namespace) -> list[Mutant]:
    """The mutants that were asked for; each of them can be planted."""
    chosen = [each for each in MUTANTS if not arguments.names or each.name in arguments.names]
    if arguments.sample:
        chosen = sampled(GROUPS, arguments.sample, arguments.turn)
    for mutant in chosen:
        mutated(mutant)
    return chosen


def watched(mutants: list[Mutant], arguments: Namespace) -> list[Verdict]:
    """The verdicts in the order of the mutants, with a progress bar on a terminal."""
    firsts = FIRST_SEEDS[:1] if arguments.sample else FIRST_SEEDS
    verdicts: dict[str, Verdict] = {}
    with Progress(disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("mutants", total=len(mutants))
        for verdict in tried_all(mutants, arguments.jobs, firsts, arguments.seeds):
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
