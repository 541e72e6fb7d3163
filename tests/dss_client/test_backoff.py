import pytest

import dss_client
from dss_client._backoff import BACKOFF_FIRST_S, BACKOFF_MAX_S, Backoff
from dss_client.testing import MemoryDaemon
from dss_core.errors import Overloaded


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, float]]:
    """From which ranges pauses were drawn; each is none."""
    ranges: list[tuple[float, float]] = []

    def uniform(low: float, high: float) -> float:
        ranges.append((low, high))
        return low

    monkeypatch.setattr("dss_client._backoff.random.uniform", uniform)
    return ranges


def test_pauses_are_drawn_from_ranges_that_double_up_to_a_bound() -> None:
    backoff = Backoff()
    for attempt in range(20):
        bound_s = min(BACKOFF_FIRST_S * 2**attempt, BACKOFF_MAX_S)
        assert 0 <= backoff.pause_s() <= bound_s
    backoff.reset()
    assert backoff.pause_s() <= BACKOFF_FIRST_S


def test_clients_that_lost_a_daemon_together_do_not_come_back_together() -> None:
    assert len({Backoff().pause_s() for _ in range(50)}) == 50


async def test_a_producer_that_is_put_off_sends_again_after_longer_and_longer_pauses(
    daemon: MemoryDaemon, drawn: list[tuple[float, float]]
) -> None:
    first = (0, BACKOFF_FIRST_S)
    async with (
        dss_client.connect(endpoint=daemon.endpoint) as client,
        client.producer("t") as producer,
    ):
        daemon.refuse = [Overloaded(what="it", limit=1)] * 3
        await producer.send(b"a")
        assert drawn == [first, (0, 2 * BACKOFF_FIRST_S), (0, 4 * BACKOFF_FIRST_S)]
        daemon.refuse = [Overloaded(what="it", limit=1)]
        await producer.send(b"b")
        assert drawn[3:] == [first], "it was there in between"


async def test_being_put_off_is_one_outage(
    daemon: MemoryDaemon,
    drawn: list[tuple[float, float]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with (
        dss_client.connect(endpoint=daemon.endpoint) as client,
        client.producer("t") as producer,
    ):
        daemon.refuse = [Overloaded(what="it", limit=1)] * 3
        await producer.send(b"a")
    assert len(drawn) == 3
    assert len(caplog.messages) == 2
