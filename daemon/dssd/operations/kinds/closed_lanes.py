"""Leaves entries in closed lanes out of a change of queues.

A change that the holder of a lane makes would wait until the lane is open, and the operation would
run on the group for as long. And the parent that the lane waits for may itself need a change of its
full queues: then both would wait for ever. So these entries are left out, and the plan says so.
Where a lane is closed behind the plan, its leader leaves undone what was asked of its holder, and
the operation fails and says so; so it does where the topic of a lane was removed.
"""

import json
from collections.abc import Iterator, Sequence
from shlex import quote

from dss_core.counted import counted
from dss_core.errors import NotUndoable
from dss_core.ids import StreamName
from dssd.leaders.lag import GroupSurvey, hindrance_sentence
from dssd.machines.leader.lent_stream import StreamState
from dssd.machines.queues import was_left_undone
from dssd.operations.kinds.queue_choice import Chosen
from dssd.operations.plans import Worked
from dssd.store.rows import OperationRow


def without_closed(chosen: Sequence[Chosen]) -> tuple[list[Chosen], list[Chosen]]:
    """The choices in open streams, and those in closed ones."""
    closed = [each for each in chosen if each.stream.view.state == StreamState.CLOSED.value]
    return [each for each in chosen if each not in closed], closed


def left_out(closed: Sequence[Chosen], what: str, then: str) -> Iterator[str]:
    """The sentence about entries left out: what they are, and what deals with them later."""
    if closed:
        count, first = sum(each.count for each in closed), closed[0].stream
        why = hindrance_sentence(first.view, first.waits_for)
        yield (
            f"{counted(count, f'{what} is', f'{what}s are')} left out, for they lie in streams "
            f"that are not open: {first.name} is {why}. {then} then."
        )


def check_some_open(row: OperationRow, chosen: Sequence[Chosen], closed: Sequence[Chosen]) -> None:
    """Refuse to take an operation back of which only entries in closed lanes are left.

    Raises:
        NotUndoable: there are no others.
    """
    if closed and not chosen:
        first = closed[0].stream
        why = hindrance_sentence(first.view, first.waits_for)
        told = f"what is left of it lies in streams that are not open: {first.name} is {why}"
        raise NotUndoable(number=row.number, kind=row.kind, why=told)


def told_left_undone(row: OperationRow, survey: GroupSurvey) -> Worked | None:
    """How an operation ends some of whose lanes were closed before it was done there; None: none
    was."""
    left = [each for each in survey.streams if was_left_undone(each.view.queues, row.number)]
    if not left:
        return None
    first = left[0]
    why = hindrance_sentence(first.view, first.waits_for) or "open again"
    command = f"{row.kind.replace('.', ' ')} {quote(row.subject)}"
    told = (
        f"{counted(len(left), 'stream was', 'streams were')} closed before it was done there, and "
        f"what is left of it stays where it is: {first.name} is {why}. Once that is open: "
        f"dssctl {f'ops undo {row.undoes}' if row.undoes else command}"
    )
    return Worked(json.loads(row.after), told)


def told_gone(row: OperationRow, survey: GroupSurvey) -> Worked | None:
    """How an operation ends that was not done when topics of its streams were removed; None: none
    was."""
    topics = {each.name.topic for each in survey.streams}
    lanes = json.loads(row.change).get("lanes", ())
    gone = {StreamName.parse(each["stream"]).topic for each in lanes} - topics
    if not gone:
        return None
    names = ", ".join(sorted(gone))
    told = f"{names} was removed before it was done there, with all that waited or was dead"
    return Worked(json.loads(row.after), told)
