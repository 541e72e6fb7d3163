"""How much of the event loop refusals may take, of all sessions together.

A client that refuses all records without a delay gets them again at once, and refuses them again.
Without a bound that would take the whole loop, as a refusal costs as much as a dozen acks. So after
taking refusals a session waits before it reads on: a multiple of the time that they took, which
grows with the number of sessions that wait so. Together they get a small part of the loop, and a
session with few refusals waits little.

Invariant: a session that refuses nothing never waits here.
"""

import asyncio

REFUSALS_PART_ALONE = 6
"""For its refusals a single session gets at most one part in so many of the event loop. The reads
and deliveries that they cause take up to three times as much again."""

REFUSALS_PART = 10
"""The same bound for many such sessions together: each then gets its records in smaller pieces."""

REFUSALS_STEP_S_MAX = 0.01
"""The most that a step of refusals counts for, five times its usual length: if the process was
suspended in between, that time was not the loop's."""


class RefusalPace:
    """Shared by all sessions."""

    def __init__(self) -> None:
        self.waiting = 0
        """Sessions that wait now."""

    async def give_way(self, took_s: float) -> None:
        """Give the loop to others, after refusals took it for so long."""
        self.waiting += 1
        try:
            await asyncio.sleep(self.pause_s(took_s))
        finally:
            self.waiting -= 1

    def pause_s(self, took_s: float) -> float:
        """How long to wait, by the number of waiting sessions, this one included."""
        step_s = min(max(took_s, 0.0), REFUSALS_STEP_S_MAX)
        return step_s * (REFUSALS_PART_ALONE - 1 + REFUSALS_PART * (self.waiting - 1))
