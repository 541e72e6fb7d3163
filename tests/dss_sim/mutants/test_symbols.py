"""Finding what a package defines by the end of its dotted path."""

from pathlib import Path

import pytest

from dss_sim.mutants.symbols import NotPlantable, Symbols

FILES = {
    "__init__.py": "LIMIT = 1\n",
    "lender.py": """
TABLE: dict[str, int] = {}
a, b = 1, 2

class Lender:
    size = 3

    def lend(self):
        def inner():
            pass

def fire():
    local = 4
""",
    "side/lender.py": "async def fire():\n    pass\n\nif LIMIT:\n    def chosen():\n        pass\n",
}


@pytest.fixture
def symbols(tmp_path: Path) -> Symbols:
    for file, source in FILES.items():
        path = tmp_path / "pack" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    return Symbols(tmp_path / "pack")


@pytest.mark.parametrize(
    ("name", "path", "file"),
    [
        ("LIMIT", "pack.LIMIT", "__init__.py"),
        ("TABLE", "pack.lender.TABLE", "lender.py"),
        ("Lender", "pack.lender.Lender", "lender.py"),
        ("lend", "pack.lender.Lender.lend", "lender.py"),
        ("Lender.lend", "pack.lender.Lender.lend", "lender.py"),
        ("inner", "pack.lender.Lender.lend.inner", "lender.py"),
        ("side.lender.fire", "pack.side.lender.fire", "side/lender.py"),
        ("pack.lender.fire", "pack.lender.fire", "lender.py"),
        ("chosen", "pack.side.lender.chosen", "side/lender.py"),
    ],
)
def test_a_symbol_is_found_by_the_end_of_its_path(
    symbols: Symbols, name: str, path: str, file: str
) -> None:
    symbol = symbols.find(name)
    assert (symbol.path, symbol.file) == (path, Path(file))


@pytest.mark.parametrize("name", ["nothing", "end", "pack.Lender", "ender.fire", "size", "local"])
def test_what_is_no_symbol_is_refused(symbols: Symbols, name: str) -> None:
    with pytest.raises(NotPlantable, match=f"no symbol is called {name}"):
        symbols.find(name)


@pytest.mark.parametrize("name", ["fire", "lender.fire"])
def test_what_names_several_is_refused_with_all_of_them(symbols: Symbols, name: str) -> None:
    with pytest.raises(NotPlantable, match=r"pack\.lender\.fire, pack\.side\.lender\.fire"):
        symbols.find(name)
