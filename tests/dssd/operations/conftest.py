"""Operations over groups and leaders of a real log."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dssd.store.memory import MemoryStore
from support.operated_groups import Works


@pytest.fixture
async def works(tmp_path: Path) -> AsyncIterator[Works]:
    made = Works(tmp_path, MemoryStore())
    await made.start()
    yield made
    await made.stop()
