"""What must hold of pauses, judged at every commit and every hand-out.

    P1   from the moment at which a pause is stored as done until it is resumed, no user is handed
         anything of the group, whatever crashes, comes back, joins or is cut off

Invariant: the rules know what is stored and what users were given; they never ask the daemon.
"""

from collections.abc import Sequence

from dss_sim.groups.history import HandedOut
from dss_sim.groups.violation import Violation
from dssd.operations.history import DONE
from dssd.operations.kinds.pause import PAUSE
from dssd.store.port import Delete, Put, Write
from dssd.store.rows import GroupRow, OperationRow


class PauseRules:
    """Takes what happens; raises `Violation`."""

    def __init__(self) -> None:
        self._paused: set[int] = set()
        """Groups whose rows say that they are paused."""
        self.quiet: dict[int, int] = {}
        """Groups that hand out nothing, each with the operation that was reported done."""

    def committed(self, writes: Sequence[Write]) -> None:
        """A commit took effect."""
        for write in writes:
            match write:
                case Put(GroupRow() as group):
                    self._group(group)
                case Put(OperationRow() as operation):
                    self._operation(operation)
                case Delete(kind, key) if kind is GroupRow:
                    self._lift(int(key[0]))

    def handed_out(self, event: HandedOut, group_id: int) -> None:
        """A user was given a record."""
        number = self.quiet.get(group_id)
        if number is not None:
            raise Violation("P1", f"operation {number} had paused the group: {event}")

    def _group(self, group: GroupRow) -> None:
        if group.paused:
            self._paused.add(group.group_id)
        else:
            self._lift(group.group_id)

    def _lift(self, group_id: int) -> None:
        self._paused.discard(group_id)
        self.quiet.pop(group_id, None)

    def _operation(self, row: OperationRow) -> None:
        if (row.kind, row.state) == (PAUSE, DONE) and row.group_id in self._paused:
            self.quiet.setdefault(row.group_id, row.number)
