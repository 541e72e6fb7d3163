"""Pause and resume of a group, and their undo.

The group's row says whether it is paused, and until when. The leader tells the members, and the
operation is done when each of them has confirmed. Invariant: the leader is always told the present
state of the row, so after a restart it never gets an older one. This module does not know how
members are told (`dssd.machines.leader.pausing`), nor who ends a pause at its time
(`dssd.operations.pause_ends`).
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

from dss_core.answers import StreamPlan
from dss_core.changes import PauseGroup, ResumeGroup, Undo
from dss_core.counted import counted
from dss_core.errors import IllegalArgument, NotUndoable
from dss_core.times import text_of_ms
from dssd.clock import Clock
from dssd.leaders.groups import Groups
from dssd.leaders.lag import GroupSurvey
from dssd.leaders.registry import Registry
from dssd.machines.leader.events import CancelPause, Instruction
from dssd.machines.leader.events import PauseGroup as PauseGroupNow
from dssd.operations.kinds.clients_named import they
from dssd.operations.plans import EVERYTHING, Begun, Made, Plan, subject_of
from dssd.store.rows import GroupRow, OperationRow

PAUSE_MS_MAX = 366 * 24 * 3_600 * 1_000
"""How far ahead the end of a pause may lie; a longer pause has no end."""


PAUSE, RESUME = "groups.pause", "groups.resume"


@dataclass(frozen=True, slots=True)
class _Pause:
    """Whether a group is paused, and until when by the wall clock."""

    paused: bool
    until_ms: int | None = None

    @classmethod
    def of_group(cls, group: GroupRow) -> "_Pause":
        return cls(group.paused, group.paused_until_ms)

    @classmethod
    def of_json(cls, text: str) -> "_Pause":
        said = json.loads(text)
        return cls(said["paused"], said["until_ms"])

    def to_json(self) -> dict[str, bool | int | None]:
        return {"paused": self.paused, "until_ms": self.until_ms}


class Pauses:
    """Plans and begins operations that pause a group or resume it."""

    def __init__(self, groups: Groups, registry: Registry, clock: Clock) -> None:
        self._groups = groups
        self._registry = registry
        self._clock = clock

    async def plan(self, change: PauseGroup | ResumeGroup) -> Plan:
        """What the change would do.

        Raises:
            GroupNotFound, GroupAmbiguous, IllegalArgument: it cannot be done.
        """
        group = self._groups.find(change.group)
        return await self._planned(change, group, self._wanted(change))

    async def begin(self, plan: Plan, number: int) -> Begun:
        """The group as it will be, and the instruction to tell the members."""
        assert plan.group is not None
        assert isinstance(plan.change, PauseGroup | ResumeGroup)
        return _begun(plan.group, self._wanted(plan.change), number)

    async def plan_undo(self, undone: OperationRow) -> Plan:
        """What an undo would do: resume a paused group, or pause a resumed one.

        Raises:
            NotUndoable: the group was paused or resumed since, or the pause would be over.
        """
        group = self._groups.get(undone.group_id)
        before = self._before(undone, group)
        plan = await self._planned(Undo(undone.number), group, before)
        summary = f"take back operation {undone.number}: {undone.summary}"
        return replace(plan, kind=undone.kind, summary=summary)

    async def begin_undo(self, undone: OperationRow, plan: Plan, number: int) -> Begun:
        """As `begin`."""
        assert plan.group is not None
        return _begun(plan.group, self._before(undone, plan.group), number)

    async def resumed(self, row: OperationRow) -> Begun:
        """The members are told the present state once more."""
        paused = self._groups.get(row.group_id).paused
        return Begun(instruction=PauseGroupNow(row.number, paused))

    def cancellation(self, row: OperationRow) -> Instruction:
        """Wait no more for confirmations; the group stays as it is."""
        return CancelPause(row.number)

    async def made(self, row: OperationRow) -> Made:
        """Nothing: confirmations are not stored."""
        return Made(0, 1)

    def _wanted(self, change: PauseGroup | ResumeGroup) -> _Pause:
        if isinstance(change, ResumeGroup):
            return _Pause(paused=False)
        until_ms, now_ms = change.until_ms, self._clock.wall_ms()
        if until_ms is not None and not now_ms < until_ms <= now_ms + PAUSE_MS_MAX:
            days = PAUSE_MS_MAX // (24 * 3_600 * 1_000)
            rule = f"it is in the future, {days} days at most; without one it lasts until a resume"
            raise IllegalArgument(argument="the end of a pause", rule=rule)
        return _Pause(paused=True, until_ms=until_ms)

    def _before(self, undone: OperationRow, group: GroupRow) -> _Pause:
        before = _Pause.of_json(undone.before)
        if _Pause.of_group(group) != _Pause.of_json(undone.after):
            why = "the group was paused or resumed since"
            raise NotUndoable(number=undone.number, kind=undone.kind, why=why)
        if before.until_ms is not None and before.until_ms <= self._clock.wall_ms():
            why = f"the pause would have ended at {text_of_ms(before.until_ms)}"
            raise NotUndoable(number=undone.number, kind=undone.kind, why=why)
        return before

    async def _planned(
        self, change: PauseGroup | ResumeGroup | Undo, group: GroupRow, wanted: _Pause
    ) -> Plan:
        survey = await self._registry.survey(group)
        members = tuple(sorted({member.client_id for member in survey.members}))
        live = self._registry.snapshot(group.group_id)
        # A pause that is there already may not have reached every member.
        reached = not wanted.paused or live is None or live.pause_obeyed
        nothing_to_do = wanted == _Pause.of_group(group) and reached
        return Plan(
            change=change,
            kind=PAUSE if wanted.paused else RESUME,
            subject=subject_of(group),
            revision=group.revision,
            summary=_summary(group, wanted, len(members), nothing_to_do=nothing_to_do),
            group=group,
            streams=() if nothing_to_do else tuple(_stream_plans(survey)),
            effects=() if nothing_to_do else tuple(_effects(group, wanted, members)),
            members=() if nothing_to_do else members,
            nothing_to_do=nothing_to_do,
            beside=EVERYTHING,
        )


def _begun(group: GroupRow, wanted: _Pause, number: int) -> Begun:
    return Begun(
        group=replace(group, paused=wanted.paused, paused_until_ms=wanted.until_ms),
        instruction=PauseGroupNow(number, wanted.paused),
        before=_Pause.of_group(group).to_json(),
        after=wanted.to_json(),
    )


def _stream_plans(survey: GroupSurvey) -> Iterator[StreamPlan]:
    for stream in survey.streams:
        floor = stream.view.progress.floor
        yield StreamPlan(
            stream=str(stream.name),
            floor=floor,
            target=floor,
            again=0,
            passed=0,
            exact=True,
            clamped=False,
            client_id=stream.view.client_id,
        )


def _summary(group: GroupRow, wanted: _Pause, members: int, *, nothing_to_do: bool) -> str:
    doing = "pause" if wanted.paused else "resume"
    if nothing_to_do:
        return f"{doing} {subject_of(group)}: nothing would change"
    until = f" until {text_of_ms(wanted.until_ms)}" if wanted.until_ms is not None else ""
    count = counted(members, "member")
    return f"{doing} {subject_of(group)}{until}: {count}"


def _effects(group: GroupRow, wanted: _Pause, members: tuple[str, ...]) -> Iterator[str]:
    if wanted.paused and group.paused:
        same = wanted == _Pause.of_group(group)
        what = "it waits for members that have not confirmed" if same else "only its end changes"
        yield f"It is paused already; {what}."
    elif wanted.paused:
        yield from _effects_of_pause(members)
    else:
        yield from _effects_of_resume(members)
    if wanted.paused:
        yield (
            "It stays paused until it is resumed."
            if wanted.until_ms is None
            else f"It resumes by itself at {text_of_ms(wanted.until_ms)}."
        )


def _effects_of_pause(members: tuple[str, ...]) -> Iterator[str]:
    if members:
        yield (
            f"{they(members, 'keeps its', 'keep their')} streams. Nothing new is handed out, not "
            "even records in a client's memory. Records in flight may be acknowledged."
        )
        yield "It is done when each of them has confirmed that, or is gone."
    yield (
        "Ack waits run on; a record whose wait ends is held until the group is resumed, and that "
        "counts as no failure. Producers go on, and lag grows."
    )


def _effects_of_resume(members: tuple[str, ...]) -> Iterator[str]:
    if members:
        yield (
            f"{they(members, 'goes', 'go')} on, each from where it stopped; what expired meanwhile "
            "comes again, marked as redelivered."
        )
    yield "Records of a key come in the order in which they would have come."
