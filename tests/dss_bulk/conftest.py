import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.log_in_process import Shelf, opened_shelf


@pytest.fixture
async def shelf(tmp_path: Path) -> AsyncIterator[Shelf]:
    async with asyncio.timeout(60), opened_shelf(tmp_path) as opened:
        yield opened
