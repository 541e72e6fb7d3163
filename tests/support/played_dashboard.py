"""A dashboard without a real terminal, over a made-up daemon.

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
    """A source that sends the given updates, and keeps the requests."""

    def __init__(self, items: Sequence[Told]) -> None:
        self.items = items
        self.planned: list[Change] = []
        self.applied: list[tuple[Change, str]] = []
        self.triggered: list[tuple[str, str]] = []
        self.answers: dict[Question, Answer] = {}
        self.refusal: DssError | None = None
        self.nothing_to_do = False

    async def run(self, tell: Tell) -> None:
        """Send all updates at once."""
        for item in self.items:
            tell(item)

    async def answer(self, place: Place, question: Question, picture: Picture) -> Answer:
        """The prepared answer."""
        return replace(self.answers.get(question, Answer(place)), place=place)

    async def plan(self, change: Change) -> OperationPlan:
        """The prepared plan, or the error against it."""
        if self.refusal is not None:
            raise self.refusal
        self.planned.append(change)
        made = plan(change, nothing_to_do=self.nothing_to_do)
        if not isinstance(change, MoveCursors):
            return made
        # As the daemon plans it: from the present offsets to those that the change means now.
        targets = (StreamTarget("payments/0/0", 1, 600),)
        return replace(made, change=replace(change, to=None, by=None, targets=targets))

    async def apply(self, plan: OperationPlan, *, reason: str, operation_id: str) -> Operation:
        """Report it as under way."""
        if self.refusal is not None:
            raise self.refusal
        self.applied.append((self.planned[-1], reason))
        return operation(9, plan.subject, state="running", reason=reason)

    async def trigger(self, schedule: str, *, reason: str) -> ScheduleRun:
        """Report its run as begun."""
        if self.refusal is not None:
            raise self.refusal
        self.triggered.append((schedule, reason))
        return ScheduleRun(4, 0, "operator", "running", 1, 0, None, None, 12, "", "", 1)


class Seen(Dashboard):
    """A dashboard that draws its frames when a test asks for it."""

    def now(self) -> None:
        """Draw everything that was received."""
        self._next_frame_s = 0.0
        self._frame()

    @property
    def texts(self) -> list[str]:
        """The lines on the terminal, below any dialog."""
        return [text_of(line) for line in sheet(self.view).lines]


@asynccontextmanager
async def played(
    source: Played,
    size: tuple[int, int] = (80, 24),
    badge: Badge | None = None,
    theme: str = "dark",
    **fields: object,
) -> AsyncIterator[tuple[Seen, Pilot[None]]]:
    """A dashboard that has drawn all updates of its source."""
    view = replace(View(badge or Badge("unix:/run/dssd.sock")), **fields)  # type: ignore[arg-type]
    dashboard = Seen(view, source, theme=theme)
    async with dashboard.run_test(size=size) as pilot:
        while not all_told(dashboard, source):
            await pilot.pause()
        dashboard.now()
        await pilot.pause()
        yield dashboard, pilot


def all_told(dashboard: Dashboard, source: Played) -> bool:
    """Whether it has received the last update."""
    ticks = sum(type(item).__name__ == "Ticked" for item in source.items)
    return dashboard.view.picture.ticks == ticks and dashboard.is_running
