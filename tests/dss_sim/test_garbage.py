import gc

import pytest

from dss_sim.garbage import frozen_heap


@pytest.fixture
def frozen() -> None:
    assert gc.get_freeze_count() > 0, "a run of the tests freezes what it has imported"


@pytest.mark.usefixtures("frozen")
def test_who_keeps_objects_frozen_finds_them_frozen_afterwards() -> None:
    before = gc.get_freeze_count()
    with frozen_heap():
        assert gc.get_freeze_count() >= before
    assert gc.get_freeze_count() >= before


def test_where_nobody_does_nothing_stays_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    monkeypatch.setattr(gc, "get_freeze_count", lambda: 0)
    monkeypatch.setattr(gc, "freeze", lambda: called.append("freeze"))
    monkeypatch.setattr(gc, "unfreeze", lambda: called.append("unfreeze"))
    with frozen_heap():
        assert called == ["freeze"]
    assert called == ["freeze", "unfreeze"]
