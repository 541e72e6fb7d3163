"""What several scenarios need."""

import pytest


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client of a dead daemon does not wait long for its answers when it leaves."""
    monkeypatch.setattr("dss_client.session.CLOSE_TIMEOUT_S", 0.1)
