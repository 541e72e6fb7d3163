"""Regenerate the synchronous twins of the client's administration from the asynchronous classes.

Usage:
    python scripts/gen_sync.py            # write into client/dss_client/sync/
    python scripts/gen_sync.py OUT_DIR    # write elsewhere (the freshness test does)

A twin has the public methods of its class, with the same parameters and documentation: a coroutine
becomes a method that waits for its end, a stream of items an iterator.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

CLIENT = Path(__file__).resolve().parent.parent / "client/dss_client"
TARGET = CLIENT / "sync"
NAME = "administration.py"
HEAD = '''"""What is administered, from threads. Made by scripts/gen_sync.py (make docs).

Invariant: each method is that of the class of the same name in `dss_client`, awaited in the loop.
"""
'''


def generate(folder: Path) -> None:
    """Write the module, formatted as the rest is."""
    path = folder / NAME
    path.write_text("\n".join([HEAD, *_imports(), *_twins()]))
    ruff = [str(Path(sys.executable).parent / "ruff")]
    config = ["--config", str(CLIENT.parent.parent / "pyproject.toml")]
    for command in (["check", "--fix-only"], ["format"], ["check"]):
        subprocess.run([*ruff, *command, "--quiet", *config, str(path)], check=True)


def _administered() -> Iterator[tuple[str, ast.Module, ast.ClassDef]]:
    """Classes that a client has as attributes, by their annotations: module, its tree, class."""
    client = _tree("_client")
    annotated = [
        ast.unparse(node.annotation).strip("'")
        for node in _class_named(client, "Client").body
        if isinstance(node, ast.AnnAssign)
    ]
    assert annotated, "a client has parts"
    homes = {
        alias.name: node.module
        for node in ast.walk(client)
        if isinstance(node, ast.ImportFrom) and node.module is not None
        for alias in node.names
    }
    for name in annotated:
        module = homes[name].removeprefix("dss_client.")
        tree = _tree(module)
        yield module, tree, _class_named(tree, name)


def _tree(module: str) -> ast.Module:
    return ast.parse((CLIENT / f"{module}.py").read_text())


def _class_named(tree: ast.Module, name: str) -> ast.ClassDef:
    return next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)


def _imports() -> Iterator[str]:
    """What annotations need; what nobody needs, the linter takes out."""
    yield "from collections.abc import Iterator"
    yield "from typing import TYPE_CHECKING"
    twins = {found.name for _, _, found in _administered()}
    for module, tree, found in _administered():
        yield f"from dss_client.{module} import {found.name} as Async{found.name}"
        own = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
        own += [node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)]  # type: ignore[union-attr]
        yield from (
            f"from dss_client.{module} import {name}"
            for name in own
            if name not in twins and not name.startswith("_")
        )
        yield from (ast.unparse(node) for node in _imported(tree) if not _is_inner(node))
    yield "if TYPE_CHECKING:"
    yield "    from dss_client._client import Client"
    yield "    from dss_client.sync._portal import Portal"


def _imported(tree: ast.Module) -> Iterator[ast.Import | ast.ImportFrom]:
    """What a module imports, for type checkers alone too."""
    for node in tree.body:
        for each in node.body if isinstance(node, ast.If) else (node,):
            if isinstance(each, ast.Import | ast.ImportFrom):
                yield each


def _is_inner(node: ast.Import | ast.ImportFrom) -> bool:
    """Of the way to the daemon, which no annotation of a public method has."""
    names = ast.unparse(node)
    return any(
        each in names for each in ("AsyncGenerator", "asyncio", "_connection", "dss_api", "limits")
    )


def _twins() -> Iterator[str]:
    yield from _parts()
    for _, _, found in _administered():
        yield ""
        yield ""
        yield f"class {found.name}:"
        yield f"    {_documentation(found)}"
        yield ""
        yield f"    def __init__(self, portal: 'Portal', twin: Async{found.name}) -> None:"
        yield "        self._portal = portal"
        yield "        self._twin = twin"
        for method in found.body:
            if isinstance(method, ast.AsyncFunctionDef) and _is_twinned(method):
                yield from _method(method)


def _is_twinned(method: ast.AsyncFunctionDef) -> bool:
    """Not what is entered with ``async with``: who drives a job has a loop of its own."""
    return not method.name.startswith("_") and not method.decorator_list


def _parts() -> Iterator[str]:
    """What a client has of them."""
    names = [found.name for _, _, found in _administered()]
    yield ""
    yield ""
    yield "class Administered:"
    yield '    """What a client administers, by noun."""'
    yield ""
    yield from (f"    {name.lower()}: '{name}'" for name in names)
    yield ""
    yield "    def _administer(self, portal: 'Portal', client: 'Client') -> None:"
    yield '        """Make the parts, of those of a client that is open."""'
    for name in names:
        yield f"        self.{name.lower()} = {name}(portal, client.{name.lower()})"


def _documentation(node: ast.ClassDef | ast.AsyncFunctionDef) -> str:
    statement = node.body[0]
    assert isinstance(statement, ast.Expr)
    return f'"""{ast.get_docstring(node, clean=False)}"""'


def _method(method: ast.AsyncFunctionDef) -> Iterator[str]:
    streams = any(isinstance(node, ast.Yield) for node in ast.walk(method))
    assert method.returns is not None
    returned = ast.unparse(method.returns)
    if streams:
        returned = returned.replace("AsyncGenerator", "Iterator").replace(", None]", "]")
    call = f"self._twin.{method.name}({', '.join(_given(method.args))})"
    yield ""
    yield f"    def {method.name}({ast.unparse(method.args)}) -> {returned}:"
    yield f"        {_documentation(method)}"
    yield f"        return self._portal.{'iterate' if streams else 'run'}({call})"


def _given(arguments: ast.arguments) -> Iterator[str]:
    """The arguments as they are passed on."""
    yield from (each.arg for each in arguments.args[1:])
    if arguments.vararg is not None:
        yield f"*{arguments.vararg.arg}"
    yield from (f"{each.arg}={each.arg}" for each in arguments.kwonlyargs)


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET)
