"""A dashboard on a terminal that is not there, over a daemon that is made up.

Invariant: it shows what it was told, and nothing moves by itself: no clock, no blinking.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from textual.pilot import Pilot

from dss_client import DssError, Operation, OperationPlan
from dss_client.changes import Change, MoveCursors, StreamTarget
from dss_client.schedules import ScheduleRun
from dssctl.top.feed.source import Tell
from dssctl.top.model.answers import Answer, Question
from dssctl.top.model.picture import Picture, Told
from dssctl.top.model.places import Place
from dssctl.top.paint.frame import Badge
from dssctl.top.paint.spans import text_of
from dssctl.top.stage.sheet import sheet
from dssctl.top.stage.view import View
from dssctl.top.terminal.app import Dashboard
from support.dashboard_items import operation, plan


class Played:
    """A source that tells what it was given, and keeps what was asked of it."""

    def __init__(self, items: Sequence[Told]) -> None:
        self.items = items
        self.planned: list[Change] = []
        self.applied: list[tuple[Change, str]] = []
        self.triggered: list[tuple[str, str]] = []
        self.answers: dict[Question, Answer] = {}
        self.refusal: DssError | None = None
        self.nothing_to_do = False

    async def run(self, tell: Tell) -> None:
        """Tell all at once."""
        for item in self.items:
            tell(item)

    async def answer(self, place: Place, question: Question, picture: Picture) -> Answer:
        """What was laid ready."""
        return replace(self.answers.get(question, Answer(place)), place=place)

    async def plan(self, change: Change) -> OperationPlan:
        """A plan, or what stands against it."""
        if self.refusal is not None:
            raise self.refusal
        self.planned.append(change)
        made = plan(change, nothing_to_do=self.nothing_to_do)
        if not isinstance(change, MoveCursors):
            return made
        # As the daemon plans it: from where it is to the offsets that this means now.
        targets = (StreamTarget("payments/0/0", 1, 600),)
        return replace(made, change=replace(change, to=None, by=None, targets=targets))

    async def apply(self, plan: OperationPlan, *, reason: str, operation_id: str) -> Operation:
        """It is under way."""
        if self.refusal is not None:
            raise self.refusal
        self.applied.append((self.planned[-1], reason))
        return operation(9, plan.subject, state="running", reason=reason)

    async def trigger(self, schedule: str, *, reason: str) -> ScheduleRun:
        """Its run is begun."""
        if self.refusal is not None:
            raise self.refusal
        self.triggered.append((schedule, reason))
        return ScheduleRun(4, 0, "operator", "running", 1, 0, None, None, 12, "", "", 1)


class Seen(Dashboard):
    """A dashboard whose frames are shown when a test says so."""

    def now(self) -> None:
        """Show all that was told."""
        self._next_frame_s = 0.0
        self._frame()

    @property
    def texts(self) -> list[str]:
        """The lines that are on the terminal, below any dialog."""
        return [text_of(line) for line in sheet(self.view).lines]


@asynccontextmanager
async def played(
    source: Played,
    size: tuple[int, int] = (80, 24),
    badge: Badge | None = None,
    theme: str = "dark",
    **fields: object,
) -> AsyncIterator[tuple[Seen, Pilot[None]]]:
    """A dashboard that has shown all that its source tells."""
    view = replace(View(badge or Badge("unix:/run/dssd.sock")), **fields)  # type: ignore[arg-type]
    dashboard = Seen(view, source, theme=theme)
    async with dashboard.run_test(size=size) as pilot:
        while not all_told(dashboard, source):
            await pilot.pause()
        dashboard.now()
        await pilot.pause()
        yield dashboard, pilot


def all_told(dashboard: Dashboard, source: Played) -> bool:
    """Whether it has heard the last item."""
    ticks = sum(type(item).__name__ == "Ticked" for item in source.items)
    return dashboard.view.picture.ticks == ticks and dashboard.is_running
