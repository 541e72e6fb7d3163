"""What the simulator takes for two winners of one revision."""

import pytest

from dss_sim.groups.checker import Violation
from dss_sim.sessions.edits import EditRules
from dssd.operations.history import NOTHING
from dssd.store.port import Put
from dssd.store.rows import OperationRow


def applied(number: int, revision: int, after: str = '{"ack_wait_ms": 7}') -> Put:
    row = OperationRow(
        number=number,
        operation_id=f"dssd-{number}",
        kind="groups.edit",
        subject="billing@orders/#",
        group_id=1,
        state="done",
        asked="{}",
        change="{}",
        summary="",
        reason="",
        principal="local:ana",
        origin="unix:",
        applied_at_ms=0,
        ended_at_ms=0,
        revision=revision,
        before=NOTHING,
        after=after,
        failure="",
        undoes=0,
        undone_by=0,
        not_undoable_because="",
    )
    return Put(row)


def test_two_operations_that_made_one_revision_are_a_violation() -> None:
    rules = EditRules()
    rules.committed([applied(7, 1)])
    rules.committed([applied(7, 1)])
    rules.committed([applied(8, 2)])
    rules.committed([applied(9, 2, NOTHING)])
    with pytest.raises(Violation, match="7 and 10"):
        rules.committed([applied(10, 1)])
