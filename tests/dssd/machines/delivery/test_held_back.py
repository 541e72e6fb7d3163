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
