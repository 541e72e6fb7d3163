import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def logging_goes_on() -> Iterator[None]:
    """Simulators silence the daemon's log in their own process, which may be that of the tests."""
    yield
    logging.disable(logging.NOTSET)
