"""How long a client is sure of what it holds, by what the daemon has answered."""

import pytest

from dss_client._doubt import SILENCE_OF_LEASE, Doubt
from dss_core.limits import LEASE_MS
from dssd.limits import SILENT_HOLDER_MS

LEASE_S = LEASE_MS / 1_000
SURE_S = SILENCE_OF_LEASE * LEASE_S


class Clock:
    """Moved by tests alone."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class NeverHeld:
    """The watch of a loop that does its work in pieces."""

    def held_until(self) -> float:
        return 0.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("dss_client._doubt.monotonic", clock)
    monkeypatch.setattr("dss_client._doubt.watch_of_loop", NeverHeld)
    return clock


def test_a_client_is_sure_from_when_it_asked_and_not_from_when_it_heard(clock: Clock) -> None:
    doubt = Doubt(LEASE_S, asked_at=clock.now)
    clock.now += SURE_S - 0.001
    doubt.heard()  # over a slow way that may be older than the loss of the connection
    assert not doubt.is_there()
    clock.now += 0.002
    doubt.heard()
    assert doubt.is_there()
    asked_at = clock.now
    clock.now += SURE_S / 2
    doubt.answered(asked_at)
    assert not doubt.is_there()
    clock.now = asked_at + SURE_S + 0.001
    assert doubt.is_there()


def test_an_answer_that_took_longer_than_a_client_may_be_sure_ends_no_doubt(clock: Clock) -> None:
    doubt = Doubt(LEASE_S, asked_at=clock.now)
    asked_at = clock.now
    clock.now += SURE_S + 0.001
    doubt.answered(asked_at)
    assert doubt.is_there()


def test_a_late_answer_takes_nothing_back(clock: Clock) -> None:
    doubt = Doubt(LEASE_S, asked_at=clock.now)
    clock.now += 1
    doubt.answered(clock.now)
    doubt.answered(clock.now - 1)
    clock.now += SURE_S - 0.001
    assert not doubt.is_there()


def test_a_client_doubts_before_its_daemon_lends_on() -> None:
    slack_s = 0.5
    assert SURE_S + slack_s <= SILENT_HOLDER_MS / 1_000
