"""How much of the event loop refusals may take, of all sessions together.

A client that refuses everything without a delay gets it again at once, and refuses it again:
without a bound that takes all of the loop, for a refusal costs as much as a dozen acks. So a
session that has taken refusals waits before it reads on, for some times as long as it took them,
and for more with each session that waits so now. All of them together have a small part of the loop
then, whoever they are, and who refuses little waits little.

Invariant: a session that refuses nothing never waits here.
"""

import asyncio

REFUSALS_PART_ALONE = 6
"""A session that refuses without end, alone, has the event loop for one part in so many to take its
refusals. The reads and deliveries that they cause take up to three times as much again."""

REFUSALS_PART = 10
"""The same of many such sessions, all together: what each is sent comes in smaller pieces then."""

REFUSALS_STEP_S_MAX = 0.01
"""What a step of refusals counts for at most, five times its usual length: where the process does
not run for a while in it, others had the processor already."""


class RefusalPace:
    """Shared by all sessions."""

    def __init__(self) -> None:
        self.waiting = 0
        """Sessions that wait now."""

    async def give_way(self, took_s: float) -> None:
        """Let others have the loop, after refusals took so long of it."""
        self.waiting += 1
        try:
            await asyncio.sleep(self.pause_s(took_s))
        finally:
            self.waiting -= 1

    def pause_s(self, took_s: float) -> float:
        """For how long, where so many wait, this one among them."""
        step_s = min(max(took_s, 0.0), REFUSALS_STEP_S_MAX)
        return step_s * (REFUSALS_PART_ALONE - 1 + REFUSALS_PART * (self.waiting - 1))
