"""Leaves entries in closed lanes out of a change of queues.

A change that the holder of a lane makes would wait until the lane is open, and the operation would
run on the group for as long. And the parent that the lane waits for may itself need a change of its
full queues: then both would wait for ever. So these entries are left out, and the plan says so.
"""

from collections.abc import Iterator, Sequence

from dss_core.counted import counted
from dssd.leaders.lag import hindrance_sentence
from dssd.machines.leader.lent_stream import StreamState
from dssd.operations.kinds.queue_choice import Chosen


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
