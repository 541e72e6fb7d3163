import pytest

from dss_core.errors import OutcomeUnknown
from dss_core.producer_ids import NO_PRODUCER
from dssd.rpc import producer_fencing
from dssd.rpc.producer_fencing import PRODUCE_CALLS_KEPT_S, ProducerFencing

A, B, C = (1).to_bytes(16), (2).to_bytes(16), (3).to_bytes(16)
OWN, OTHER = (1, 7), (1, 8)


@pytest.fixture
def calls() -> ProducerFencing:
    return ProducerFencing()


def test_what_an_older_call_brings_after_a_newer_one_is_refused(calls: ProducerFencing) -> None:
    older, newer = calls.begin(), calls.begin()
    calls.check(A, OWN, older, 0)
    calls.check(A, OWN, newer, 0)
    calls.check(A, OWN, newer, 0)
    with pytest.raises(OutcomeUnknown):
        calls.check(A, OWN, older, 0)
    calls.check(B, OWN, older, 0)


def test_records_without_a_producer_are_taken_from_every_call(calls: ProducerFencing) -> None:
    older, newer = calls.begin(), calls.begin()
    calls.check(NO_PRODUCER, OWN, newer, 0)
    calls.check(NO_PRODUCER, OWN, older, 0)


def test_a_producer_is_known_for_a_while_and_longer_if_it_goes_on(calls: ProducerFencing) -> None:
    older, newer = calls.begin(), calls.begin()
    calls.check(A, OWN, newer, 0)
    for turn in range(1, 5):
        at_s = turn * (PRODUCE_CALLS_KEPT_S + 1)
        calls.check(turn.to_bytes(16, "little"), OWN, calls.begin(), at_s)
        with pytest.raises(OutcomeUnknown):
            calls.check(A, OWN, older, at_s)
        calls.check(A, OWN, newer, at_s)


def test_a_share_at_its_bound_forgets_and_its_older_calls_have_to_come_again(
    calls: ProducerFencing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(producer_fencing, "PRODUCERS_OWNER_MAX", 2)
    older, greedy, newer = calls.begin(), calls.begin(), calls.begin()
    calls.check(A, OWN, older, 0)
    calls.check(A, OTHER, older, 0)
    for one in (A, B, C):
        calls.check(one, OWN, greedy, 0)
    for one in (A, B, C):
        with pytest.raises(OutcomeUnknown):
            calls.check(one, OWN, older, 0)
    calls.check(B, OWN, newer, 0)
    with pytest.raises(OutcomeUnknown):
        calls.check(B, OWN, greedy, 0)
    calls.check(A, OTHER, older, 0)


def test_where_all_together_are_too_many_the_largest_share_forgets(
    calls: ProducerFencing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(producer_fencing, "PRODUCERS_MAX", 4)
    older, newer = calls.begin(), calls.begin()
    calls.check(C, OTHER, older, 0)
    for number in range(10, 14):
        calls.check(number.to_bytes(16), OWN, newer, 0)
    with pytest.raises(OutcomeUnknown):
        calls.check(A, OWN, older, 0)
    calls.check(A, OTHER, older, 0)
    calls.check(C, OTHER, newer, 0)
    with pytest.raises(OutcomeUnknown):
        calls.check(C, OTHER, older, 0)


def test_a_share_that_went_silent_is_forgotten(
    calls: ProducerFencing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(producer_fencing, "PRODUCERS_MAX", 4)
    call = calls.begin()
    for number in range(10, 13):
        calls.check(number.to_bytes(16), OWN, call, 0)
    later = calls.begin()
    for number in range(10, 12):
        calls.check(number.to_bytes(16), OTHER, later, 1 + PRODUCE_CALLS_KEPT_S)
    assert len(calls) == 2
