"""The tasks ``dlq-redrive``, ``dlq-expire`` and ``dlq-check``: dead letters by the clock.

They apply the same operations as an operator, group by group, and do not wait for them to end: a
redrive takes as long as its rate needs, and needs a member in the group. Invariants: only dead
letters of the given age are discarded. A group with another operation under way is left alone, and
reported.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from dss_core.changes import DiscardDeadLetters, RedriveDeadLetters
from dss_core.counted import counted
from dss_core.errors import DssError, IllegalArgument, TaskFailed
from dss_core.limits import REDRIVE_RATE_MAX
from dssd.clock import Clock
from dssd.operations.plans import subject_of
from dssd.schedules.tasks import parsing
from dssd.schedules.tasks.groups_meant import is_meant
from dssd.schedules.tasks.model import Argument, Given, Say, Task
from dssd.store.rows import GroupRow, OperationRow

REDRIVE_TASK, EXPIRE_TASK, CHECK_TASK = "dlq-redrive", "dlq-expire", "dlq-check"

CANARY_MAX = 10_000
"""Size of the canary of a redrive by the clock: enough to predict whether the others would fail,
and few of them."""

_MOST = (1 << 63) - 1

QueueChange = RedriveDeadLetters | DiscardDeadLetters
Begin = Callable[[QueueChange], Awaitable[OperationRow | None]]
"""Applies a change, and returns once it counts; None where there was nothing to do."""


@dataclass(frozen=True, slots=True)
class DeadCount:
    """How many dead letters a group has."""

    name: str
    """NAME@FILTER."""
    dead: int


DeadCounts = Callable[[], Awaitable[Sequence[DeadCount]]]


def dlq_redrive(groups: Callable[[], Sequence[GroupRow]], begin: Begin, clock: Clock) -> Task:
    """The task that brings dead letters back, over the groups that there are."""

    async def work(given: Given, say: Say) -> None:
        def change(name: str) -> QueueChange:
            end_us = _older_than_us(given["older-than"], clock)
            rate, canary = given["rate"], given["canary"]
            return RedriveDeadLetters(name, given["error"], end_us=end_us, rate=rate, canary=canary)

        await _of_groups(REDRIVE_TASK, groups(), given["groups"], change, begin, say)

    return Task(
        REDRIVE_TASK,
        "Bring dead letters of groups back, some of them first.",
        work,
        (
            Argument("groups", "Names, joined by commas; * for anything.", parsing.names, "*"),
            Argument("error", "Only of this fingerprint, or cause.", parsing.text),
            Argument("older-than", "Only what died so long ago: 1h.", parsing.span_ms),
            Argument("rate", "At most so many a second.", parsing.number(1, REDRIVE_RATE_MAX)),
            Argument(
                "canary",
                "So many first; the others only if none of them fails.",
                parsing.number(1, CANARY_MAX),
                "10",
            ),
        ),
    )


def dlq_expire(groups: Callable[[], Sequence[GroupRow]], begin: Begin, clock: Clock) -> Task:
    """The task that gives up dead letters of a certain age."""

    async def work(given: Given, say: Say) -> None:
        if given["older-than"] is None:
            rule = "it says how old a dead letter is that is given up: older-than=30d"
            raise IllegalArgument(argument=f"the task {EXPIRE_TASK}", rule=rule)

        def change(name: str) -> QueueChange:
            return DiscardDeadLetters(name, end_us=_older_than_us(given["older-than"], clock))

        await _of_groups(EXPIRE_TASK, groups(), given["groups"], change, begin, say)

    return Task(
        EXPIRE_TASK,
        "Give up dead letters of groups for good that are older than was said.",
        work,
        (
            Argument("groups", "Names, joined by commas; * for anything.", parsing.names, "*"),
            Argument("older-than", "Since they died; it has to be said: 30d.", parsing.span_ms),
        ),
    )


def dlq_check(counts: DeadCounts) -> Task:
    """The task that fails where groups have too many dead letters."""

    async def work(given: Given, say: Say) -> None:
        most = given["max-dead"] or 0
        looked_at = [each for each in await counts() if is_meant(each.name, given["groups"])]
        bad = [each for each in looked_at if each.dead > most]
        groups = counted(len(looked_at), "group")
        if not bad:
            say(f"{groups}: none has too many dead letters.")
            return
        bad.sort(key=lambda each: -each.dead)
        for each in bad:
            say(f"{each.name} has {counted(each.dead, 'dead letter')}")
        why = f"{len(bad)} of {groups} have too many dead letters: {bad[0].name} most."
        raise TaskFailed(task=CHECK_TASK, why=why)

    return Task(
        CHECK_TASK,
        "Look for groups with too many dead letters; fail if there are any.",
        work,
        (
            Argument("groups", "Names, joined by commas; * for anything.", parsing.names, "*"),
            Argument("max-dead", "As many as may be.", parsing.number(0, _MOST), "0"),
        ),
        alone=False,
    )


async def _of_groups(
    task: str,
    groups: Sequence[GroupRow],
    patterns: Sequence[str],
    change: Callable[[str], QueueChange],
    begin: Begin,
    say: Say,
) -> None:
    failed = 0
    for group in groups:
        name = subject_of(group)
        if not (group.max_deliver and is_meant(name, patterns)):
            continue
        try:
            row = await begin(change(name))
        except DssError as refused:
            failed += 1
            say(f"{name}: {refused.message}")
            continue
        if row is None:
            say(f"{name}: nothing to do.")
        else:
            say(f"{row.summary}: operation {row.number}")
    if failed:
        why = f"{counted(failed, 'group')} could not be dealt with."
        raise TaskFailed(task=task, why=why)


def _older_than_us(span_ms: int | None, clock: Clock) -> int | None:
    return None if span_ms is None else (clock.wall_ms() - span_ms) * 1_000
