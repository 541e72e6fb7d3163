"""Reads that fail are tried again after pauses that grow to a bound."""

from dssd.limits import READ_AGAIN_MS, READ_AGAIN_MS_MAX
from dssd.machines.delivery.read_trouble import ReadTrouble
from dssd.machines.messages import Stall


def test_pauses_double_up_to_a_bound_and_begin_anew_after_a_success() -> None:
    trouble = ReadTrouble()
    pauses = []
    for _ in range(8):
        trouble.met(Stall.UNREADABLE, 0)
        assert trouble.again_ms is not None
        pauses.append(trouble.again_ms)
    assert pauses[:3] == [READ_AGAIN_MS, 2 * READ_AGAIN_MS, 4 * READ_AGAIN_MS]
    assert max(pauses) == pauses[-1] == READ_AGAIN_MS_MAX
    trouble.over()
    trouble.met(Stall.UNREADABLE, 0)
    assert trouble.again_ms == READ_AGAIN_MS


def test_it_is_not_read_before_the_pause_is_over() -> None:
    trouble = ReadTrouble()
    trouble.met(Stall.DAMAGED, 10)
    trouble.wake(10 + READ_AGAIN_MS - 1)
    assert trouble.again_ms is not None
    trouble.wake(10 + READ_AGAIN_MS)
    assert trouble.again_ms is None
    assert trouble.stall is Stall.DAMAGED, "until a read succeeds"
