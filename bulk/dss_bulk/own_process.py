"""Settings for a driver in a process of its own, made before it loads Arrow.

Invariant: only for processes of their own; in another process, threads and memory stay as they are.
"""

import asyncio
import os
import sys
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import TypeVar

_NEVER = "-1"

T = TypeVar("T")


class _NoPandas(MetaPathFinder):
    """Keeps Arrow from loading pandas.

    Arrow loads it with the first value that it gets, wherever pandas is installed, to check whether
    the value comes from pandas. That takes as long as some hundred thousand records, and a driver
    has no such values.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("a driver needs no pandas", name=fullname)


def set_up() -> None:
    """Keep out pandas, and keep memory that Arrow once had in the process."""
    sys.meta_path.insert(0, _NoPandas())
    # For mimalloc, Arrow's own allocator, which reads it when Arrow is loaded. The next batch needs
    # as much as the one before, and fresh pages took a tenth of a driver's time.
    os.environ.setdefault("MIMALLOC_PURGE_DELAY", _NEVER)


async def in_one_thread(driving: Coroutine[None, None, T]) -> T:
    """The result of a driving whose work outside of the loop is done by one thread.

    It reads, copies and writes in turns, never at once. Each thread has memory of its own, and
    memory that one thread gave back would have to be fetched again, page by page, by another.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="driver") as one:
        asyncio.get_running_loop().set_default_executor(one)
        return await driving
