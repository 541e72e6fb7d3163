"""Ids of producers say when the producer began, and no two are alike."""

import pytest

from dss_core.producer_ids import began_us, new_producer_id


@pytest.mark.parametrize("time_us", [0, 1, 1_700_000_000_000_000, (1 << 55) - 1])
def test_an_id_says_when_its_producer_began(time_us: int) -> None:
    ids = {new_producer_id(time_us) for _ in range(100)}
    assert {began_us(one) for one in ids} == {time_us}
    assert {len(one) for one in ids} == {16}
    assert len(ids) == 100


def test_a_time_out_of_bounds_is_the_nearest() -> None:
    assert began_us(new_producer_id(-1)) == 0
    assert began_us(new_producer_id(1 << 60)) == (1 << 55) - 1


@pytest.mark.parametrize("other", [bytes(16), b"a" * 16, b"\x01" + b"\xff" * 15])
def test_an_id_of_another_form_says_nothing(other: bytes) -> None:
    assert began_us(other) is None
