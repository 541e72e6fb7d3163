"""Schedules over operations."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dssd.store.memory import MemoryStore
from support.played_schedules import ScheduledWorks


@pytest.fixture
async def works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ScheduledWorks]:
    monkeypatch.setattr("dssd.schedules.schedules.SCHEDULE_LOOK_S", 0.002)
    monkeypatch.setattr("dssd.schedules.schedules.SCHEDULE_LOOK_S_MIN", 0.001)
    monkeypatch.setattr("dssd.schedules.schedules.SCHEDULE_RETRY_S", 0.002)
    made = ScheduledWorks(tmp_path, MemoryStore())
    await made.start()
    yield made
    await made.stop()
