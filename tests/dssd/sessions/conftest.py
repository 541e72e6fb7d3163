from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dss_sim.played_groups import Plant
from dss_sim.played_sessions import Hall, opened_hall
from dssd.store.memory import MemoryStore


@pytest.fixture
async def plant(tmp_path: Path) -> AsyncIterator[Plant]:
    store = MemoryStore()
    made = Plant(tmp_path / "log", store)
    await made.start()
    yield made
    await made.stop()
    await store.close()


@pytest.fixture
async def hall(plant: Plant) -> AsyncIterator[Hall]:
    async with opened_hall(plant) as opened:
        yield opened
