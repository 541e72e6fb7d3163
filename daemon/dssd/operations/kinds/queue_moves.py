"""The commit of an operation on queues: the moves of its lanes, as rows, and the instruction."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from dss_core.lane import DEAD, RETRY
from dss_core.progress import Ranges, total
from dssd.leaders.lag import GroupSurvey
from dssd.leaders.progress_columns import packed_ranges
from dssd.machines.leader.events import CursorMove, StreamView
from dssd.machines.leader.events import MoveCursors as MoveCursorsNow
from dssd.operations.plans import Begun, Made
from dssd.store.port import Put
from dssd.store.rows import GroupRow, OperationRow, PendingMoveRow


def begun_moves(group: GroupRow, number: int, moves: Sequence[CursorMove], records: int) -> Begun:
    """The writes of the operation of that number, and the instruction to the leader."""
    return Begun(
        writes=[Put(move_row(group, move)) for move in moves],
        group=replace(group, cursor_generation=number) if moves else None,
        instruction=MoveCursorsNow(number, tuple(moves)) if moves else None,
        after={"moves": len(moves), "records": records},
    )


def errands_done(row: OperationRow, survey: GroupSurvey, what: str) -> Made:
    """How many of its entries of retry queues are dealt with."""
    left = sum(
        total(errand.ranges) - sum(progress.acked_in(*span) for span in errand.ranges)
        for queues in (each.view.queues for each in survey.streams if each.view.queues)
        for errand, progress in [(queues[RETRY - 1].errand, queues[RETRY - 1].progress)]
        if errand.operation == row.number
    )
    records = json.loads(row.after)["records"]
    return Made(max(records - left, 0), records, what)


def redriven(row: OperationRow, survey: GroupSurvey) -> Made:
    """How many of the dead letters that it names came back."""
    done = sum(
        view.queues[DEAD - 1].progress.acked_in(*span)
        for view, ranges in _named(row, survey)
        for span in ranges
    )
    return Made(done, json.loads(row.after)["records"], "dead letters came back")


def given_up(row: OperationRow, survey: GroupSurvey) -> Made:
    """How many dead letters were given up: all of lanes that were told, except those that had
    left."""
    told = [ranges for view, ranges in _named(row, survey) if view.cursor_generation >= row.number]
    done = sum(map(total, told)) - had_left(row, survey)
    return Made(done, json.loads(row.after)["records"], "dead letters were given up")


def had_left(row: OperationRow, survey: GroupSurvey) -> int:
    """How many of its dead letters had left before it could give them up."""
    dead = (each.view.queues[DEAD - 1].errand for each in survey.streams if each.view.queues)
    return sum(total(each.ranges) for each in dead if each.operation == row.number)


def _named(row: OperationRow, survey: GroupSurvey) -> Iterator[tuple[StreamView, Ranges]]:
    """The entries of each lane that an operation names."""
    views = {str(each.name): each.view for each in survey.streams if each.view.queues}
    for lane in json.loads(row.change)["lanes"]:
        if lane["stream"] in views:
            yield views[lane["stream"]], tuple(map(tuple, lane["ranges"]))


def move_row(group: GroupRow, move: CursorMove) -> PendingMoveRow:
    """The row of a move that waits to be made."""
    return PendingMoveRow(
        group.group_id,
        *move.stream,
        number=move.number,
        dropped=b"",
        added=b"",
        redriven=packed_ranges(move.redriven),
        discarded=packed_ranges(move.discarded),
        redrive_ms=move.redrive_ms,
        redrive_whole_keys=move.whole_keys,
        errand_kind=move.errand,
        errand_ranges=packed_ranges(move.entries),
    )
