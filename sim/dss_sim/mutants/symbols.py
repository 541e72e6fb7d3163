"""The names that a package defines, each with the syntax that defines it.

A symbol is a function, a method, a class, or a name that a module assigns. It is named by the end
of its dotted path, long enough to be unique, so it may move between modules.

Invariant: the package and the trees are only read.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class NotPlantable(Exception):
    """It is not clear what a mutant changes."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name that is defined in a module."""

    path: str
    """Dotted, from the package on."""
    file: Path
    """Below the package."""
    module: ast.Module
    node: ast.stmt


class Symbols:
    """All symbols of a package."""

    def __init__(self, package: Path) -> None:
        self._by_name: defaultdict[str, list[Symbol]] = defaultdict(list)
        for path in sorted(package.rglob("*.py")):
            self._read(package, path.relative_to(package))

    def _read(self, package: Path, file: Path) -> None:
        module = ast.parse((package / file).read_bytes(), str(file))
        parts = [package.name, *file.with_suffix("").parts]
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        for path, node in (*_assigned(name, module), *_defined(name, module)):
            symbol = Symbol(path, file, module, node)
            self._by_name[path.rpartition(".")[2]].append(symbol)

    def find(self, name: str) -> Symbol:
        """The symbol whose path ends with this name.

        Raises:
            NotPlantable: there is none, or more than one.
        """
        named = self._by_name.get(name.rpartition(".")[2], [])
        ending = [each for each in named if f".{each.path}".endswith(f".{name}")]
        if not ending:
            raise NotPlantable(f"no symbol is called {name}")
        if len(ending) > 1:
            paths = ", ".join(symbol.path for symbol in ending)
            raise NotPlantable(f"{name} is ambiguous: {paths}")
        return ending[0]


@cache
def symbols_of(package: Path) -> Symbols:
    """The symbols of the package in a folder, as they were when they were first asked for."""
    return Symbols(package)


def _assigned(path: str, module: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    for statement in module.body:
        match statement:
            case ast.Assign(targets=[ast.Name(name)]) | ast.AnnAssign(target=ast.Name(name)):
                yield f"{path}.{name}", statement


def _defined(path: str, node: ast.AST) -> Iterator[tuple[str, ast.stmt]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, DEFINITIONS):
            yield f"{path}.{child.name}", child
            yield from _defined(f"{path}.{child.name}", child)
        elif not isinstance(child, ast.expr):
            yield from _defined(path, child)
