"""Operators who edit one group at the same time, all starting from the same revision.

Invariants, by the names of docs/proof/sessions-simulator.md::

    R1  of the operations that were planned for one revision of a group exactly one is applied
    R2  the row of the group has what the last applied one asked for
"""

import asyncio
from collections.abc import Sequence
from random import Random

from dss_core.changes import EditGroup
from dss_core.errors import DssError, RevisionMoved
from dss_sim.groups.checker import Violation
from dss_sim.sessions.life import Life
from dssd.operations.history import NOTHING
from dssd.operations.operations import Caller
from dssd.operations.plans import subject_of
from dssd.store.port import Put, Write
from dssd.store.rows import GroupRow, OperationRow

EDITORS = (2, 3)
ACK_WAITS_MS = (20_000, 25_000, 30_000, 40_000)


class EditRules:
    """Takes commits; raises `Violation`."""

    def __init__(self) -> None:
        self._applied: dict[tuple[int, int], int] = {}
        """By group and the revision that it made."""

    def committed(self, writes: Sequence[Write]) -> None:
        """A commit took effect."""
        rows = [write.row for write in writes if isinstance(write, Put)]
        for row in rows:
            if isinstance(row, OperationRow) and row.group_id and row.after != NOTHING:
                made = (row.group_id, row.revision)
                first = self._applied.setdefault(made, row.number)
                if first != row.number:
                    raise Violation("R1", f"operations {first} and {row.number} made {made}")


async def edit_at_once(life: Life, group: GroupRow, seed: str) -> None:
    """Several operators plan an edit of the group, and then apply all of these plans.

    Raises:
        Violation: none was applied although nothing else changed the group, or another one than
        reported.
    """
    chance = Random(seed)
    subject = subject_of(group)
    others = [each for each in ACK_WAITS_MS if each != group.ack_wait_ms]
    waits_ms = chance.sample(others, chance.randint(*EDITORS))
    caller = Caller("operator", "the world")
    applying = [
        life.operations.apply(
            EditGroup(subject, ack_wait_ms=each), caller=caller, if_revision=group.revision
        )
        for each in waits_ms
    ]
    outcomes = await asyncio.gather(*applying, return_exceptions=True)
    unexpected = [
        each
        for each in outcomes
        if isinstance(each, BaseException) and not isinstance(each, DssError)
    ]
    if unexpected:
        raise unexpected[0]
    won = [at for at, each in enumerate(outcomes) if isinstance(each, OperationRow)]
    if len(won) > 1:
        raise Violation("R1", f"{len(won)} of {len(outcomes)} editors of {subject} won")
    if not life.groups.has(group.group_id):
        return
    now = life.groups.get(group.group_id)
    if not won and now.revision == group.revision and _all_moved(outcomes):
        raise Violation("R1", f"no editor of {subject} won at revision {now.revision}")
    if won and now.revision == group.revision + 1 and now.ack_wait_ms != waits_ms[won[0]]:
        raise Violation("R2", f"{subject} has an ack wait of {now.ack_wait_ms} ms")


def _all_moved(outcomes: Sequence[object]) -> bool:
    return all(isinstance(each, RevisionMoved) for each in outcomes)
