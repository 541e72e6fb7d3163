"""What kinds of operations have in common that cannot be taken back or stopped."""

from typing import NoReturn

from dss_core.errors import NotUndoable
from dssd.operations.plans import Begun, Cancellation, Made, Plan
from dssd.store.rows import OperationRow


class Unstoppable:
    """The part of a kind that is about stopping, where nothing of it waits."""

    def cancellation(self, row: OperationRow) -> Cancellation | None:
        """It cannot be stopped."""
        return None

    async def made(self, row: OperationRow) -> Made:
        """All of it: it cannot be stopped."""
        return Made(1, 1)


class Final(Unstoppable):
    """The part of a kind that is about going back; its plans say why there is none."""

    async def plan_undo(self, undone: OperationRow) -> Plan:
        """It is refused.

        Raises:
            NotUndoable: always.
        """
        self._refuse(undone)

    async def begin_undo(self, undone: OperationRow, plan: Plan, number: int) -> Begun:
        """As `plan_undo`."""
        self._refuse(undone)

    def _refuse(self, undone: OperationRow) -> NoReturn:
        why = undone.not_undoable_because
        raise NotUndoable(number=undone.number, kind=undone.kind, why=why)
