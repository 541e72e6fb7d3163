from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dss_sim.played_groups import Plant
from dss_sim.played_sessions import Hall, opened_hall
from dssd.questions.questions import Questions
from dssd.store.memory import MemoryStore


@pytest.fixture
async def hall(tmp_path: Path) -> AsyncIterator[Hall]:
    """Sessions over real leaders and a real log."""
    store = MemoryStore()
    plant = Plant(tmp_path / "log", store)
    await plant.start()
    async with opened_hall(plant) as opened:
        yield opened
    await plant.stop()
    await store.close()


@pytest.fixture
def questions(hall: Hall) -> Questions:
    """All questions, over the same parts."""
    plant = hall.plant
    return Questions(
        plant.groups, plant.registry, plant.catalogue, plant.log, hall.sessions, plant.clock
    )
