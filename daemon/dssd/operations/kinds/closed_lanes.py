"""What a change of queues leaves out, because its lane is closed.

A change that the holder of a lane makes would wait until that is open, and keep the operation on
the group for as long. What the lane waits for may itself need another change of queues, where its
own are full: then both would wait for ever. So it is left out, and the plan says so.
"""

from collections.abc import Iterator, Sequence

from dss_core.counted import counted
from dssd.leaders.lag import hindrance_sentence
from dssd.machines.leader.lent_stream import StreamState
from dssd.operations.kinds.queue_choice import Chosen


def without_closed(chosen: Sequence[Chosen]) -> tuple[list[Chosen], list[Chosen]]:
    """What can be done now, and what lies in streams that are closed."""
    closed = [each for each in chosen if each.stream.view.state == StreamState.CLOSED.value]
    return [each for each in chosen if each not in closed], closed


def left_out(closed: Sequence[Chosen], what: str, then: str) -> Iterator[str]:
    """The sentence about it: of what, and what deals with it then."""
    if closed:
        count, first = sum(each.count for each in closed), closed[0].stream
        why = hindrance_sentence(first.view, first.waits_for)
        yield (
            f"{counted(count, f'{what} is', f'{what}s are')} left out, for they lie in streams "
            f"that are not open: {first.name} is {why}. {then} then."
        )
