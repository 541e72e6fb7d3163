"""The task ``rebalance``: streams are spread evenly, at an hour in which moving them hurts nobody.

It applies the operation that an operator would, group by group, and waits for each. Invariant: a
group is left as it is, and named in the output, if another operation runs on it or its members go
away meanwhile.
"""

from collections.abc import Awaitable, Callable, Sequence

from dss_core.changes import Rebalance
from dss_core.counted import counted
from dss_core.errors import DssError, TaskFailed
from dssd.leaders.declarations import EXCLUSIVE
from dssd.operations.history import DONE
from dssd.operations.limits import MOVES_A_PLAN_MAX
from dssd.operations.plans import subject_of
from dssd.schedules.tasks import parsing
from dssd.schedules.tasks.model import Argument, Given, Say, Task
from dssd.store.rows import GroupRow, OperationRow

NAME = "rebalance"

Change = Callable[[Rebalance], Awaitable[OperationRow | None]]
"""Applies a change, and returns once it has ended; None where there was nothing to do."""


def rebalance(groups: Callable[[], Sequence[GroupRow]], change: Change) -> Task:
    """The task, over the groups that there are."""

    async def work(given: Given, say: Say) -> None:
        failed = 0
        for group in groups():
            name = subject_of(group)
            wanted = not given["groups"] or {group.name, name} & set(given["groups"])
            if group.kind == EXCLUSIVE or not wanted:
                continue
            try:
                ended = await change(Rebalance(name, given["moves"]))
            except DssError as refused:
                failed += 1
                say(f"{name}: {refused.message}")
                continue
            if ended is None:
                say(f"{name}: its streams are spread evenly.")
                continue
            failed += ended.state != DONE
            say(f"{ended.summary}: {ended.state}")
        if failed:
            why = f"{counted(failed, 'group')} could not be rebalanced."
            raise TaskFailed(task=NAME, why=why)

    moves = parsing.number(1, MOVES_A_PLAN_MAX)
    return Task(
        NAME,
        "Spread the streams of groups evenly over their members.",
        work,
        (
            Argument("groups", "NAME or NAME@FILTER, joined by commas; all.", parsing.names),
            Argument("moves", "Move at most so many streams of a group.", moves),
        ),
    )
