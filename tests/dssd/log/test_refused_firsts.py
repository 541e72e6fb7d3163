import pytest

from dssd.log.refused_firsts import Producer, RefusedFirsts


def producers(count: int) -> list[Producer]:
    return [(7, number, b"p" * 16) for number in range(count)]


def test_the_newest_refusal_of_a_producer_counts_until_it_has_begun() -> None:
    refused = RefusedFirsts()
    one, other = producers(2)
    refused.note(one, 4)
    refused.note(one, 1)
    assert (refused.first(one), refused.first(other)) == (1, None)
    refused.forget(one)
    refused.forget(other)
    assert refused.first(one) is None
    assert len(refused) == 0


def test_at_the_bound_the_producer_is_forgotten_that_was_refused_longest_ago(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dssd.log.refused_firsts.PRODUCERS_REFUSED_MAX", 2)
    refused = RefusedFirsts()
    first, second, third = producers(3)
    for one in (first, second, first, third):
        refused.note(one, 0)
    assert [refused.first(one) for one in (first, second, third)] == [0, None, 0]
