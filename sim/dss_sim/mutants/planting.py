"""One seeded bug, and how it is put into a copy of the package.

Invariant: the package that is imported here is only read; a copy holds exactly one change.
"""

import ast
import builtins
import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

import dss_client
import dssd
from dss_sim.mutants.anchors import replaced
from dss_sim.mutants.symbols import NotPlantable, symbols_of

PACKAGE = Path(dssd.__file__).parent
CLIENT = Path(dss_client.__file__).parent


@dataclass(frozen=True, slots=True)
class Mutant:
    """One seeded bug."""

    name: str
    stands_for: str
    """The mistake that it stands for: one that somebody could make, or made."""
    symbol: str
    """The symbol that it changes: the end of a dotted path, long enough to be unique in its
    package."""
    before: str
    """The code to replace: an expression, or statements that follow each other."""
    after: str
    """The replacement; empty to delete statements."""
    judge: str = "dss_sim.groups.run"
    """The simulator that must find it: a module whose ``run_seed`` gives the run of a seed, with
    the first ``violation`` or None, which names its ``invariant``."""
    in_client: bool = False
    """Whether it is in the client library; otherwise it is in the daemon."""

    @property
    def package(self) -> Path:
        """The folder of the package that it is in."""
        return CLIENT if self.in_client else PACKAGE


class Mutated(NamedTuple):
    """A file with a mutant's change."""

    file: Path
    """Below its package."""
    module: ast.Module

    def source(self) -> str:
        """Its source after the change, without comments."""
        return ast.unparse(self.module) + "\n"


def planted(mutant: Mutant, folder: Path) -> None:
    """Put a copy of the package with this one change into the folder.

    Raises:
        NotPlantable: it is not clear what the mutant changes.
    """
    changed = mutated(mutant)
    package = mutant.package
    copy = folder / package.name
    # Compiled files are copied too, because compiling costs more than the seeds of most mutants.
    # The changed file's is left out, or a write within the same second would not be noticed.
    stale = shutil.ignore_patterns(f"{changed.file.stem}.*.pyc")
    shutil.copytree(package, copy, ignore=stale)
    (copy / changed.file).write_text(changed.source())


def mutated(mutant: Mutant) -> Mutated:
    """The mutant's file with its change.

    Raises:
        NotPlantable: it is not clear what the mutant changes, or it uses a name that is not there,
            and would be found for that.
    """
    try:
        symbol = symbols_of(mutant.package).find(mutant.symbol)
        changed = replaced(symbol, mutant.before, mutant.after)
        _check_names(symbol.module, ast.parse(dedent(mutant.after).strip()))
    except NotPlantable as error:
        raise NotPlantable(f"{mutant.name}: {error}") from error
    return Mutated(symbol.file, changed)


def _check_names(module: ast.Module, after: ast.Module) -> None:
    names = {node.id for node in ast.walk(after) if isinstance(node, ast.Name)}
    unknown = names - _bound(after) - _bound(module) - {*dir(builtins)}
    if unknown:
        raise NotPlantable(f"it knows no {', '.join(sorted(unknown))}")


@cache
def _bound(module: ast.Module) -> frozenset[str]:
    """All names that are bound anywhere in it: a local one of another function counts."""
    found: set[str] = set()
    for node in ast.walk(module):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                found.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
            case ast.ClassDef(name=name):
                found.add(name)
            case ast.alias(name=name, asname=other):
                found.add(other or name.partition(".")[0])
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                found.add(name)
            case _:
                pass
    return frozenset(found)
