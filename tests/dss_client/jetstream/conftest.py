from collections.abc import AsyncIterator, Iterator

import pytest

from support.jetstream_worlds import DssWorld, dss_world_on
from support.served_daemon import served


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """Of a daemon for the module."""
    with served() as (where, _):
        yield where


@pytest.fixture
async def world(endpoint: str) -> AsyncIterator[DssWorld]:
    """The stream ORDERS, of one partition, and a client."""
    async with dss_world_on(endpoint) as made:
        yield made
