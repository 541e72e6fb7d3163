"""The task ``checkpoint``: the store's write-ahead log is written back, and gives up its space."""

from collections.abc import Awaitable, Callable

from dss_core.counted import counted
from dssd.schedules.tasks.model import Given, Say, Task


def checkpoint(write_back: Callable[[], Awaitable[int]]) -> Task:
    """The task, over what writes it back and says how many bytes the log had."""

    async def work(_given: Given, say: Say) -> None:
        size_bytes = await write_back()
        say(f"{counted(size_bytes, 'byte')} of the write-ahead log were written back.")

    return Task("checkpoint", "Write the store's write-ahead log back into the database.", work)
