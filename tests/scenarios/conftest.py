"""What several scenarios need."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.daemon_process import short_directory


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client of a dead daemon does not wait long for its answers when it leaves."""
    monkeypatch.setattr("dss_client.session.CLOSE_TIMEOUT_S", 0.1)


@pytest.fixture
def directory() -> Iterator[Path]:
    """A data directory whose path is short."""
    with short_directory() as made:
        yield made
