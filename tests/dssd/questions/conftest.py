from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dss_sim.played_groups import Plant
from dss_sim.played_sessions import Hall, opened_hall
from dssd.events.teller import Unheard
from dssd.operations.kind_table import operation_kinds
from dssd.operations.operations import Operations
from dssd.questions.questions import Questions
from dssd.store.memory import MemoryStore
from support.bulk_jobs import opened_jobs


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
async def operations(hall: Hall) -> AsyncIterator[Operations]:
    """What operators change of the same parts."""
    plant = hall.plant
    parts = (plant.store, plant.groups, plant.registry)
    jobs = await opened_jobs(plant)
    opened = await Operations.open(*parts, plant.clock, Unheard())
    below = (*parts, plant.catalogue, plant.log, hall.sessions, jobs)
    kinds = operation_kinds(*below, plant.clock, Unheard().note, opened, lambda _: True)
    async with opened.running(kinds):
        yield opened


@pytest.fixture
def questions(hall: Hall, operations: Operations) -> Questions:
    """All questions, over the same parts; the test looks for the sampler."""
    plant = hall.plant
    return Questions(
        plant.groups,
        plant.registry,
        plant.catalogue,
        plant.log,
        hall.sessions,
        operations,
        plant.clock,
    )
