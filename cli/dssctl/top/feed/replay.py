"""A recording as the source: plays its items at the original pace, or faster.

Invariant: a moment of a recording is shown the same, whether it was played to or jumped to: a jump
back plays all items again, from the first.
"""

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, NoReturn

from dss_core.errors import IllegalArgument
from dssctl.top.feed.recording import recorded
from dssctl.top.limits import FRAME_S
from dssctl.top.model.answers import Answer, Question
from dssctl.top.model.picture import Told
from dssctl.top.paint import amounts

if TYPE_CHECKING:
    from collections.abc import Callable

    from dss_client import Operation, OperationPlan
    from dss_client.changes import Change
    from dss_client.schedules import ScheduleRun
    from dssctl.top.feed.source import Tell
    from dssctl.top.model.picture import Picture
    from dssctl.top.model.places import Place

REPLAY_JUMP_S = 10
"""How far a key jumps in a recording."""

REPLAY_SPEED_MAX = 64
"""The most that a recording is sped up; each key press doubles the speed."""


class Replayed:
    """Plays a recording."""

    def __init__(self, path: str, begin_anew: "Callable[[], None]") -> None:
        """Begin at its first item; `begin_anew` forgets all that was told.

        Raises:
            InputUnreadable, DocumentUnreadable: it is no recording.
        """
        self._path = path
        self._begin_anew = begin_anew
        self._items = recorded(path)
        self._next = self._following()
        self._from_ms = self._next[0] if self._next else 0
        self._at_ms = float(self._from_ms)
        self.speed = 1.0
        self.frozen = False

    @property
    def where(self) -> str:
        """The present time in the recording, and the speed."""
        at = f"{amounts.moment(int(self._at_ms))} +{amounts.span(int(self._at_ms) - self._from_ms)}"
        speed = "" if self.speed == 1 else f" x{self.speed:g}"
        return at + speed + ("" if self._next else " the end")

    async def run(self, tell: "Tell") -> None:
        """Play it; at its end, wait for a jump back."""
        while True:
            if not self.frozen:
                self.play(tell, FRAME_S * 1_000 * self.speed)
            await asyncio.sleep(FRAME_S)

    def play(self, tell: "Tell", ms: float) -> None:
        """Report the items of the next so many milliseconds."""
        if self._next is None:
            return
        self._at_ms += ms
        for told in self._due():
            tell(told)

    def jump(self, tell: "Tell", direction: int) -> None:
        """Jump some seconds back or on."""
        if direction > 0:
            self.play(tell, REPLAY_JUMP_S * 1_000)
            return
        at_ms = max(self._from_ms, self._at_ms - REPLAY_JUMP_S * 1_000)
        self._begin_anew()
        self._items = recorded(self._path)
        self._next = self._following()
        self._at_ms = at_ms
        self.play(tell, 0)

    def hasten(self, factor: float) -> None:
        """Multiply the speed, within bounds."""
        self.speed = min(REPLAY_SPEED_MAX, max(1 / REPLAY_SPEED_MAX, self.speed * factor))

    def _due(self) -> Iterator[Told]:
        while self._next is not None and self._next[0] <= self._at_ms:
            yield self._next[1]
            self._next = self._following()

    def _following(self) -> tuple[int, Told] | None:
        return next(self._items, None)

    async def answer(self, place: "Place", question: Question, picture: "Picture") -> Answer:
        """Answer that there is no daemon to ask."""
        return Answer(place, failure="a recording has no daemon to ask")

    async def plan(self, change: "Change") -> "OperationPlan":
        """Nothing can be changed.

        Raises:
            IllegalArgument: always.
        """
        self._refuse()

    async def apply(self, plan: "OperationPlan", *, reason: str, operation_id: str) -> "Operation":
        """Nothing can be changed.

        Raises:
            IllegalArgument: always.
        """
        self._refuse()

    async def trigger(self, schedule: str, *, reason: str) -> "ScheduleRun":
        """Nothing can be run.

        Raises:
            IllegalArgument: always.
        """
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise IllegalArgument(argument="a change", rule="a recording is only looked at")
