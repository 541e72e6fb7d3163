"""Both adapters, and rows to put into them."""

import os
import random
import shutil
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from dssd.store.checksums import Column
from dssd.store.memory import MemoryStore
from dssd.store.port import Store
from dssd.store.rows import KINDS, Row
from dssd.store.schema import columns_of
from dssd.store.sqlite import SqliteStore
from support.prerequisites import need_strace


@pytest.fixture(params=["sqlite", "memory"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    opened: Store = MemoryStore()
    if request.param == "sqlite":
        opened = await SqliteStore.open(tmp_path / "store.sqlite")
    yield opened
    await opened.close()


@pytest.fixture
async def sqlite_store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = await SqliteStore.open(tmp_path / "store.sqlite")
    yield opened
    await opened.close()


@pytest.fixture
def some_rows() -> list[Row]:
    """A few rows of every kind, with every sort of value that a column may hold."""
    chance = random.Random(1)
    return [
        kind(*(a_value(column, number, column.name in kind.KEY, chance) for column in columns))
        for kind in KINDS
        for columns in [columns_of(kind)]
        for number in range(25)
    ]


def a_value(column: Column, number: int, is_key: bool, chance: random.Random) -> object:
    """The value of a column for a row number; values of key columns differ by number."""
    if column.optional and chance.random() < 0.3:
        return None
    if column.type is int:
        return number if is_key else chance.choice([0, 1, -1, number, 2**40 + number])
    if column.type is bool:
        return chance.random() < 0.5
    text = f"{column.name}-{number}" if is_key or chance.random() < 0.8 else ""
    return text if column.type is str else text.encode()


@pytest.fixture
def program() -> Callable[..., list[str]]:
    """The command line of a program beside these tests."""

    def command(name: str, *arguments: object) -> list[str]:
        path = Path(__file__).parent / "programs" / f"{name}.py"
        return [sys.executable, str(path), *map(str, arguments)]

    return command


@pytest.fixture
def environment() -> dict[str, str]:
    """Lets a program import what the tests import."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


@pytest.fixture(scope="session")
def strace() -> str:
    """The path of strace; the proof is left out where it is missing or may not trace."""
    need_strace()
    path = shutil.which("strace")
    assert path is not None
    return path
