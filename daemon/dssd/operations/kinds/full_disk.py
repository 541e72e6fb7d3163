"""Steps of operations that wait for room on a full disk.

Invariant: a step that fails for want of room has changed nothing, so it is taken again. This module
must not know what the steps do.
"""

import asyncio
from collections.abc import Awaitable, Callable

from dss_core.errors import DiskFull, DssError, Overloaded
from dssd.clock import Clock
from dssd.limits import FULL_DISK_RETRY_S

FULL_DISK_WAIT_MS_MAX = 60_000
"""How long an operation waits for room. Meanwhile its topic can only be removed."""


async def with_room(
    step: Callable[[], Awaitable[object]], clock: Clock, overdue: Callable[[int], DssError]
) -> None:
    """Take a step as soon as there is room.

    ``overdue`` makes the exception if the disk stays full, from the seconds waited.
    """
    ends_ms = clock.now_ms() + FULL_DISK_WAIT_MS_MAX
    while True:
        try:
            await step()
        except (DiskFull, Overloaded) as full:
            if clock.now_ms() >= ends_ms:
                raise overdue(FULL_DISK_WAIT_MS_MAX // 1_000) from full
            await asyncio.sleep(FULL_DISK_RETRY_S)
        else:
            return
