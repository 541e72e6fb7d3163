import pytest

from dss_sim.groups.redelivery_rules import RedeliveryRules
from dss_sim.groups.violation import Violation
from dssd.limits import REDELIVERY_MS
from dssd.machines.delivery.events import Deliver, Nak, Settle

GRANT, WAIT_MS = 7, 5_000


@pytest.fixture
def notes() -> RedeliveryRules:
    """Records 0 to 3 were handed out at 100 ms, the last of them is refused at 200 ms."""
    notes = RedeliveryRules()
    notes.installed(GRANT, 0, 1_000)
    notes.settled(Settle(GRANT, frontier=4), 100)
    notes.settled(Settle(GRANT, naks=(Nak(3, 4),), frontier=4), 200)
    return notes


def delivered(start: int, end: int, *masked: tuple[int, int]) -> Deliver:
    return Deliver(GRANT, b"", masked, True, 2, start, end)


def comes(notes: RedeliveryRules, delivery: Deliver, now_ms: int) -> bool:
    """Whether it may."""
    try:
        notes.check(delivery, now_ms, WAIT_MS)
    except Violation as found:
        return found.invariant != "S10"
    return True


def test_a_record_must_not_come_again_within_its_ack_wait(notes: RedeliveryRules) -> None:
    assert not comes(notes, delivered(0, 3), 99 + WAIT_MS)


def test_a_record_comes_again_after_its_ack_wait(notes: RedeliveryRules) -> None:
    assert comes(notes, delivered(0, 3), 100 + WAIT_MS)


def test_a_refused_record_must_rest(notes: RedeliveryRules) -> None:
    assert not comes(notes, delivered(3, 4), 199 + REDELIVERY_MS)


def test_a_refused_record_that_has_rested_comes_again(notes: RedeliveryRules) -> None:
    assert comes(notes, delivered(3, 4), 200 + REDELIVERY_MS)


def test_what_is_masked_does_not_come(notes: RedeliveryRules) -> None:
    assert comes(notes, delivered(0, 6, (0, 4)), 300)


def test_the_wait_begins_anew_with_the_next_hand_out(notes: RedeliveryRules) -> None:
    assert comes(notes, delivered(0, 1), 100 + WAIT_MS)
    notes.settled(Settle(GRANT, frontier=4, in_progress=((0, 1),)), 6_000)
    assert not comes(notes, delivered(0, 1), 5_999 + WAIT_MS)
    notes.settled(Settle(GRANT, frontier=4, in_progress=((0, 1),)), 7_000)
    assert comes(notes, delivered(0, 1), 7_000 + WAIT_MS)


def test_what_came_under_grants_before_is_not_judged() -> None:
    notes = RedeliveryRules()
    notes.installed(GRANT, 4, 1_000)
    assert comes(notes, delivered(0, 4), 0)
    notes.settled(Settle(GRANT, frontier=6), 100)
    notes.dropped(GRANT)
    notes.settled(Settle(GRANT, frontier=6), 100)
    assert comes(notes, delivered(4, 6), 200)
