"""Operations that found nothing to do: they are kept and told, and cannot be taken back."""

from collections.abc import Sequence

import pytest

from dss_core.changes import (
    Change,
    Direction,
    EditGroup,
    EditTopic,
    MoveCursors,
    PauseGroup,
    Rebalance,
    ResumeGroup,
    ToEarliest,
    TransferGrant,
    Undo,
)
from dss_core.errors import NotUndoable, RevisionMoved
from dssd.operations.operations import CHANGED_NOTHING
from support.operated_groups import ANA, Works
from support.shared_groups import shared

TO_ANN = TransferGrant("billing", "orders/0/0", "ann")


@pytest.mark.parametrize(
    ("before", "change"),
    [
        ([], ResumeGroup("billing")),
        ([PauseGroup("billing")], PauseGroup("billing")),
        ([TO_ANN], TO_ANN),
        ([], Rebalance("billing")),
        ([], MoveCursors("billing", Direction.REWIND, (), ToEarliest())),
        ([EditGroup("billing", ack_wait_ms=5_000)], EditGroup("billing", ack_wait_ms=5_000)),
        ([], EditTopic("orders", no_retention_ms=True)),
    ],
    ids=lambda given: type(given).__name__ if not isinstance(given, Sequence) else "",
)
async def test_an_operation_that_changed_nothing_is_told_and_cannot_be_taken_back(
    works: Works, before: Sequence[Change], change: Change
) -> None:
    await shared(works, "ann", streams=2)
    for each in before:
        await works.apply(each)
    assert (await works.operations.plan(change)).nothing_to_do
    row = await works.operations.apply(change, caller=ANA)
    assert (row.state, row.not_undoable_because) == ("done", CHANGED_NOTHING)
    assert await works.operations.undo_refusal(row.number) == CHANGED_NOTHING
    with pytest.raises(NotUndoable):
        await works.operations.apply(Undo(row.number), caller=ANA)


@pytest.mark.parametrize(
    "edits",
    [
        (EditGroup("billing", ack_wait_ms=5_000), EditGroup("billing", ack_wait_ms=5_000)),
        (EditTopic("orders", retention_ms=9_000_000), EditTopic("orders", retention_ms=9_000_000)),
    ],
    ids=["group", "topic"],
)
async def test_an_edit_that_would_change_nothing_is_refused_for_an_older_revision(
    works: Works, edits: tuple[Change, Change]
) -> None:
    """And where it is not refused it leaves the revision, so another one may name it too."""
    await shared(works, "ann", streams=1)
    first, second = edits
    revision = (await works.operations.plan(first)).revision
    done = await works.apply(first, if_revision=revision)
    with pytest.raises(RevisionMoved):
        await works.operations.apply(second, caller=ANA, if_revision=revision)
    idle = await works.apply(second, if_revision=done.revision)
    assert idle.revision == done.revision == (await works.operations.plan(second)).revision
