"""One seeded bug, and how it gets into a copy of the package.

Invariant: the package that is imported here is only read; a copy holds exactly one change.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

import dssd

PACKAGE = Path(dssd.__file__).parent


class NotPlantable(Exception):
    """The text that a mutant replaces does not occur exactly once in its file."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One seeded bug."""

    name: str
    stands_for: str
    """The mistake that somebody could make, or made."""
    file: str
    """Below the package `dssd`."""
    text: str
    replacement: str
    judge: str = "dss_sim.groups.run"
    """The simulator that is to find it: a module whose ``run_seed`` gives the run of a seed, with
    the first ``violation`` or None, which names its ``invariant``."""


def planted(mutant: Mutant, folder: Path) -> None:
    """Put a copy of the package with this one change into the folder, as ``dssd``.

    Raises:
        NotPlantable: the text does not occur exactly once.
    """
    mended = mutated(mutant)
    copy = folder / PACKAGE.name
    # Compiled files are taken along, for they cost more than the seeds of most mutants; that of
    # the changed file is not, or a write within the same second would not be noticed.
    stale = shutil.ignore_patterns(f"{Path(mutant.file).stem}.*.pyc")
    shutil.copytree(PACKAGE, copy, ignore=stale)
    (copy / mutant.file).write_text(mended)


def mutated(mutant: Mutant) -> str:
    """The mutant's file with its change.

    Raises:
        NotPlantable: the text does not occur exactly once.
    """
    source = (PACKAGE / mutant.file).read_text()
    times = source.count(mutant.text)
    if times != 1:
        raise NotPlantable(f"{mutant.name}: its text occurs {times} times in {mutant.file}")
    return source.replace(mutant.text, mutant.replacement)
