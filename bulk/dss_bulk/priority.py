"""A driver gives way: whatever else wants a processor is served before it.

Invariant: what a driver starts gives way as it does; nothing gets a higher priority than it had.
Only for processes of their own, before they have threads.
"""

import os
from contextlib import suppress
from pathlib import Path

DRIVER_NICENESS = 10
"""Of a driver, and of all that it starts here: beside whoever produces and consumes it gets a tenth
of a processor, and all that they leave."""


_SESSION = Path("/proc/self/autogroup")
"""``/autogroup-25 nice 0``: Linux may weigh sessions first, and processes only within their own.

It is empty where the kernel put the session in no group of its own, as in some containers.
"""


def give_way() -> None:
    """Lower the priority of this process, unless it is as low already."""
    if os.getpriority(os.PRIO_PROCESS, 0) < DRIVER_NICENESS:
        os.setpriority(os.PRIO_PROCESS, 0, DRIVER_NICENESS)
    # Only where the session is the driver's own: a terminal keeps what it has.
    if os.getsid(0) == os.getpid():
        _session_gives_way()


def _session_gives_way() -> None:
    # Other systems, and kernels without such groups, have no such file.
    with suppress(OSError):
        group = _SESSION.read_text().split()
        if group and int(group[-1]) < DRIVER_NICENESS:
            _SESSION.write_text(str(DRIVER_NICENESS))
