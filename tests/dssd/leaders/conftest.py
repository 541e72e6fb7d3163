from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dss_sim.played_groups import Plant
from dssd.store.memory import MemoryStore
from dssd.store.port import Store
from dssd.store.sqlite import SqliteStore


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    made: Store
    if request.param == "memory":
        made = MemoryStore()
    else:
        made = await SqliteStore.open(tmp_path / "store.db")
    yield made
    await made.close()


@pytest.fixture
async def plant(store: Store, tmp_path: Path) -> AsyncIterator[Plant]:
    made = Plant(tmp_path / "log", store)
    await made.start()
    yield made
    await made.stop()
