import pytest


@pytest.fixture
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each turn on the event loop is over at once."""
    monkeypatch.setattr("dssd.loop_yield.LOOP_TURN_S", 0)
    monkeypatch.setattr("dssd.log.write.loop_reports.LOOP_TURN_S", 0)
