"""The port of the dashboard to the source of its items.

Invariant: a failure of the daemon never ends a source; the source reports it and goes on.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias

from dssctl.top.model.answers import Answer, Question
from dssctl.top.model.picture import Picture, Told
from dssctl.top.model.places import Place

if TYPE_CHECKING:
    from dss_client import Operation, OperationPlan
    from dss_client.changes import Change
    from dss_client.schedules import ScheduleRun

Tell: TypeAlias = Callable[[Told], None]


class Source(Protocol):
    """A daemon, or a recording."""

    async def run(self, tell: Tell) -> None:
        """Report items until it is cancelled, or there are no more."""

    async def answer(self, place: Place, question: Question, picture: Picture) -> Answer:
        """The answer to a question about a place, which no watch reports; a failure is an
        answer."""

    async def plan(self, change: "Change") -> "OperationPlan":
        """What a change would do.

        Raises:
            DssError: what stands against it.
        """

    async def apply(self, plan: "OperationPlan", *, reason: str, operation_id: str) -> "Operation":
        """Do what was planned.

        Raises:
            DssError: what stands against it.
        """

    async def trigger(self, schedule: str, *, reason: str) -> "ScheduleRun":
        """Run a schedule's task now.

        Raises:
            DssError: what stands against it.
        """
