"""Records that the cursor passes by and that come in their own time."""

from dss_core.progress import Progress
from dssd.machines.delivery.held_back import HeldBack


def test_of_what_the_cursor_has_passed_in_part_that_part_comes() -> None:
    held = HeldBack([(10, 3, 9)], [])
    assert held.release(Progress(0), 3, 10) == []
    assert held.release(Progress(0), 5, 9) == []
    assert held.release(Progress(0), 5, 10) == [(3, 5)]
    assert held.ranges() == ((5, 9),)
    assert held.release(Progress(0), 20, 10) == [(5, 9)]
    assert held.ranges() == ()


def test_what_the_cursor_has_not_passed_is_not_in_the_way_of_what_it_has() -> None:
    held = HeldBack([(10, 8, 9), (20, 2, 3)], [(30, 7, 8), (40, 4, 5)])
    assert held.next_ms(6) == 20
    assert held.release(Progress(0), 6, 50) == [(2, 3), (4, 5)]
    held.settled(4, 5)
    assert held.next_ms(6) is None
    assert held.next_ms(9) == 10
    assert held.release(Progress(0), 9, 50) == [(8, 9), (7, 8)]
