"""Rows of progress that a move wrote, and such that it should not have written."""

from dataclasses import replace

import pytest

from dss_core.progress import Ranges
from dss_sim.groups.move_rules import check_known, check_written_move
from dss_sim.groups.violation import Violation
from dssd.leaders.progress_columns import packed_attempts, packed_ranges
from dssd.store.rows import MadeMoveRow, PendingMoveRow, ProgressRow

FROM_TWO: Ranges = ((2, 1 << 62),)
BEFORE = ProgressRow(1, 1, 0, 4, b"", 6, packed_attempts(((4, 6, 2),)), False, 0, acked_count=4)
AFTER = replace(
    BEFORE, floor=2, frontier=2, attempts=b"", cursor_generation=7, moved_count=-2, marked_below=6
)
MADE = MadeMoveRow(7, 1, 0, 4, b"", 2, b"")
ASKED = PendingMoveRow(1, 1, 0, 7, packed_ranges(FROM_TWO), b"")


def test_a_move_as_it_should_be_written_holds() -> None:
    check_written_move(BEFORE, AFTER, MADE, ASKED)
    check_known(BEFORE, AFTER, MADE)


def test_a_commit_that_moves_nothing_holds() -> None:
    after = replace(BEFORE, floor=5, acked_count=5, attempts=packed_attempts(((5, 6, 2),)))
    check_written_move(BEFORE, after, None, None)
    check_known(BEFORE, after, None)


@pytest.mark.parametrize(
    ("name", "before", "after", "made", "asked"),
    [
        ("S25", BEFORE, AFTER, None, ASKED),
        ("S25", BEFORE, AFTER, MADE, None),
        ("S25", BEFORE, AFTER, MADE, replace(ASKED, number=6)),
        ("S25", BEFORE, BEFORE, MADE, ASKED),
        ("S25", BEFORE, AFTER, replace(MADE, floor_after=3), ASKED),
        ("S24", replace(BEFORE, cursor_generation=7), AFTER, MADE, ASKED),
    ],
)
def test_a_cursor_moves_once_where_an_operation_asks_for_it(
    name: str,
    before: ProgressRow,
    after: ProgressRow,
    made: MadeMoveRow | None,
    asked: PendingMoveRow | None,
) -> None:
    with pytest.raises(Violation, match=f"^{name}: "):
        check_written_move(before, after, made, asked)


@pytest.mark.parametrize(
    ("name", "after", "made"),
    [
        ("S14", replace(AFTER, moved_count=0), MADE),
        ("S10", replace(AFTER, frontier=1), MADE),
        ("S21", replace(AFTER, frontier=3), MADE),
        ("S21", replace(AFTER, marked_below=5), MADE),
        ("S21", replace(AFTER, attempts=packed_attempts(((4, 6, 2),))), MADE),
        ("S10", replace(BEFORE, attempts=b""), None),
        ("S10", replace(BEFORE, frontier=5), None),
        ("S14", replace(BEFORE, acked_count=5), None),
    ],
)
def test_what_is_known_is_kept_up_to_what_is_reopened(
    name: str, after: ProgressRow, made: MadeMoveRow | None
) -> None:
    with pytest.raises(Violation, match=f"^{name}: "):
        check_known(BEFORE, after, made)
