import pytest

from dss_core.errors import OutcomeUnknown, Overloaded
from dssd.limits import PRODUCE_CALLS_KEPT_S
from dssd.log.sequences import NO_PRODUCER
from dssd.rpc import producer_fencing
from dssd.rpc.producer_fencing import ProducerFencing

A, B = (1).to_bytes(16), (2).to_bytes(16)


@pytest.fixture
def calls() -> ProducerFencing:
    return ProducerFencing()


def test_what_an_older_call_brings_after_a_newer_one_is_refused(calls: ProducerFencing) -> None:
    older, newer = calls.begin(), calls.begin()
    calls.check(A, older, 0)
    calls.check(A, newer, 0)
    calls.check(A, newer, 0)
    with pytest.raises(OutcomeUnknown):
        calls.check(A, older, 0)
    calls.check(B, older, 0)


def test_records_without_a_producer_are_taken_from_every_call(calls: ProducerFencing) -> None:
    older, newer = calls.begin(), calls.begin()
    calls.check(NO_PRODUCER, newer, 0)
    calls.check(NO_PRODUCER, older, 0)


def test_a_producer_is_known_for_a_while_and_longer_if_it_goes_on(calls: ProducerFencing) -> None:
    older, newer = calls.begin(), calls.begin()
    calls.check(A, newer, 0)
    for turn in range(1, 5):
        at_s = turn * (PRODUCE_CALLS_KEPT_S + 1)
        calls.check(turn.to_bytes(16, "little"), calls.begin(), at_s)
        with pytest.raises(OutcomeUnknown):
            calls.check(A, older, at_s)
        calls.check(A, newer, at_s)


def test_producers_that_came_at_once_are_bounded(
    calls: ProducerFencing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(producer_fencing, "PRODUCERS_MAX", 1)
    call = calls.begin()
    calls.check(A, call, 0)
    with pytest.raises(Overloaded):
        calls.check(B, call, 1)
    calls.check(B, call, 1 + PRODUCE_CALLS_KEPT_S)
