"""The task ``retention``: what is too old, or too much, is deleted now.

The daemon does so each minute by itself; the task is for a moment that an operator chooses.
"""

from collections.abc import Awaitable, Callable

from dss_core.counted import counted
from dssd.schedules.tasks.model import Given, Say, Task


def retention(enforce: Callable[[], Awaitable[int]]) -> Task:
    """The task, over what enforces it and says how many segments went."""

    async def work(_given: Given, say: Say) -> None:
        say(f"{counted(await enforce(), 'segment')} went.")

    return Task("retention", "Delete what retention takes, of every topic, now.", work)
