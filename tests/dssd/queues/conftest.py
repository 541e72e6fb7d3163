from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.held_lane import Holder, held_lane


@pytest.fixture
async def holder(tmp_path: Path) -> AsyncIterator[Holder]:
    async with held_lane(tmp_path / "log") as made:
        yield made
