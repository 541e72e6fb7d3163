"""The common parts of kinds of operations that cannot be undone or stopped."""

from typing import NoReturn

from dss_core.errors import NotUndoable
from dssd.operations.plans import Begun, Cancellation, Made, Plan
from dssd.store.rows import OperationRow


class Unstoppable:
    """The answers to cancellation of a kind that cannot be stopped."""

    def cancellation(self, row: OperationRow) -> Cancellation | None:
        """It cannot be stopped."""
        return None

    async def made(self, row: OperationRow) -> Made:
        """All of it: it cannot be stopped."""
        return Made(1, 1)


class Final(Unstoppable):
    """The answers to an undo of a kind that has none; its plans say why."""

    async def plan_undo(self, undone: OperationRow) -> Plan:
        """Refuse it.

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
