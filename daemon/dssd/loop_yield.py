"""Yielding to other tasks in the middle of a long loop.

The length of some loops depends on clients: the records of a publish, the streams of a topic.
Invariant: such a loop holds the event loop for about `LOOP_TURN_S` at a time.
"""

import asyncio
from time import perf_counter

from dssd.limits import LOOP_TURN_S


class LoopTurn:
    """A task's turn on the event loop. It begins when this object is made, and anew after each
    yield."""

    __slots__ = ("_before_s", "_until")

    def __init__(self) -> None:
        self._until = perf_counter() + LOOP_TURN_S
        self._before_s = 0.0
        """How long the turns before this one have held the loop."""

    def taken_s(self) -> float:
        """How long the turn has taken so far."""
        return perf_counter() - self._until + LOOP_TURN_S

    def held_s(self) -> float:
        """How long all its turns have held the loop so far."""
        return self._before_s + self.taken_s()

    async def give_way(self) -> None:
        """Let other tasks run if the turn is over. Call it in each round of a loop."""
        if perf_counter() >= self._until:
            self._before_s += self.taken_s()
            await asyncio.sleep(0)
            self._until = perf_counter() + LOOP_TURN_S
