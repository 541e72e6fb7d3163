"""Finding a snippet in a symbol by its syntax, and replacing it.

A snippet is an expression, or one or more statements that follow each other in one body. Parts of
these, such as a keyword argument or a case, are changed with the whole expression or statement
around them. The exception is a dict: it stands for its entries, which may follow each other in a
longer dict, so that rows of a table can be named. An expression replaces an expression, entries
replace entries, and anything else replaces statements.

Invariant: only syntax counts. Moving, reformatting and commenting code changes no answer. No given
tree is written to; a changed tree shares with it what they have in common.
"""

import ast
import copy
from collections.abc import Iterator, Sequence
from textwrap import dedent
from typing import NamedTuple, TypeVar

from dss_sim.mutants.symbols import NotPlantable, Symbol

Tree = TypeVar("Tree", bound=ast.AST)
Nodes = Sequence[ast.AST]


class Change(NamedTuple):
    """Nodes of a tree that stand next to each other, and their replacement."""

    old: Nodes
    new: Nodes


def replaced(symbol: Symbol, before: str, after: str) -> ast.Module:
    """The symbol's module, with one snippet replaced by the other.

    Raises:
        NotPlantable: a snippet is not Python, or the first does not occur exactly once.
    """
    changes = list(_changes(symbol.node, *_snippets(before, after)))
    if len(changes) != 1:
        raise NotPlantable(f"{before!r} occurs {len(changes)} times in {symbol.path}")
    return _changed(symbol.module, changes[0])


def _snippets(before: str, after: str) -> tuple[Nodes, Nodes]:
    """Both as expressions if they are, otherwise as statements."""
    wanted, instead = _parsed(before), _parsed(after)
    if not wanted:
        raise NotPlantable("there is no snippet to look for")
    match wanted, instead:
        case [ast.Expr(value=old)], [ast.Expr(value=new)]:
            return [old], [new]
    return wanted, instead


def _parsed(snippet: str) -> list[ast.stmt]:
    try:
        return ast.parse(dedent(snippet).strip()).body
    except SyntaxError as error:
        raise NotPlantable(f"{snippet!r} is no Python: {error.msg}") from error


def _changes(root: ast.stmt, wanted: Nodes, instead: Nodes) -> Iterator[Change]:
    """One change for each place that looks like the wanted snippet."""
    match wanted, instead:
        case [ast.Dict(keys=[_, *_]) as entries], [ast.Dict() as others]:
            for node in ast.walk(root):
                if isinstance(node, ast.Dict):
                    yield from _changes_of_entries(node, entries, others)
        case _:
            dumps = _dumps(wanted)
            for siblings in _rows(root):
                for at in _occurrences(siblings, wanted, dumps):
                    yield Change(siblings[at : at + len(wanted)], instead)


def _changes_of_entries(node: ast.Dict, wanted: ast.Dict, instead: ast.Dict) -> Iterator[Change]:
    entries, dumps = _dumps_of_entries(node), _dumps_of_entries(wanted)
    for at in range(len(entries) - len(dumps) + 1):
        end = at + len(dumps)
        if entries[at:end] == dumps:
            keys = [*node.keys[:at], *instead.keys, *node.keys[end:]]
            values = [*node.values[:at], *instead.values, *node.values[end:]]
            yield Change([node], [ast.Dict(keys, values)])


def _dumps_of_entries(node: ast.Dict) -> list[tuple[str | None, str]]:
    """A dict that is unpacked into another has None as its key."""
    keys = [None if key is None else ast.dump(key) for key in node.keys]
    return list(zip(keys, _dumps(node.values), strict=True))


def _occurrences(siblings: Nodes, wanted: Nodes, dumps: list[str]) -> Iterator[int]:
    """Where nodes that look like the wanted ones begin."""
    for at in range(len(siblings) - len(wanted) + 1):
        # Dumping nodes of other kinds would take seconds over all mutants.
        alike = type(siblings[at]) is type(wanted[0])
        if alike and _dumps(siblings[at : at + len(wanted)]) == dumps:
            yield at


def _dumps(nodes: Nodes) -> list[str]:
    return [ast.dump(node) for node in nodes]


def _rows(root: ast.stmt) -> Iterator[Nodes]:
    """The nodes of a tree, grouped by the list in which they stand."""
    yield [root]
    for node in ast.walk(root):
        for _, value in ast.iter_fields(node):
            if isinstance(value, list):
                yield [each for each in value if isinstance(each, ast.AST)]
            elif isinstance(value, ast.AST):
                yield [value]


def _changed(tree: Tree, change: Change) -> Tree:
    """The tree after the change; the same tree if it is not affected."""
    fields: dict[str, object] = {}
    for field, value in ast.iter_fields(tree):
        anew = _changed_field(value, change)
        if anew is not value:
            fields[field] = [ast.Pass()] if field == "body" and anew == [] else anew
    if not fields:
        return tree
    anew = copy.copy(tree)
    for field, value in fields.items():
        setattr(anew, field, value)
    return anew


def _changed_field(value: object, change: Change) -> object:
    old, new = change
    if value is old[0]:
        return new[0]
    if isinstance(value, ast.AST):
        return _changed(value, change)
    if not isinstance(value, list):
        return value
    for at, each in enumerate(value):
        if each is old[0]:
            return [*value[:at], *new, *value[at + len(old) :]]
    anew = [_changed_field(each, change) for each in value]
    return anew if any(a is not b for a, b in zip(anew, value, strict=True)) else value
