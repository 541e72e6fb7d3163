"""The task ``sessions``: sessions whose expiry has passed are discarded now."""

from collections.abc import Awaitable, Callable

from dss_core.counted import counted
from dssd.schedules.tasks.model import Given, Say, Task


def sessions(discard: Callable[[], Awaitable[None]], kept: Callable[[], int]) -> Task:
    """The task, over what discards them and what counts those that are kept."""

    async def work(_given: Given, say: Say) -> None:
        before = kept()
        await discard()
        gone = max(0, before - kept())
        left = kept()
        say(f"{counted(gone, 'expired session')} went, {left:,} stay.")

    return Task("sessions", "Discard the sessions whose expiry has passed.", work)
