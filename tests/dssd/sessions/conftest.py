from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dssd.store.memory import MemoryStore
from dssd.testing.attached import Hall, opened_hall
from dssd.testing.plant import Plant


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
