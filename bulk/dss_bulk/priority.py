"""Lowers a driver's priority: everything else that wants a processor is served first.

Invariant: processes that a driver starts have its priority; nothing gets a higher one than before.
Only for processes of their own, before they have threads.
"""

import os
from contextlib import suppress
from pathlib import Path

DRIVER_NICENESS = 10
"""The nice value of a driver and its child processes: beside producers and consumers it gets a
tenth of a processor, and all that they leave."""


_SESSION = Path("/proc/self/autogroup")
"""``/autogroup-25 nice 0``: Linux may weigh sessions first, and processes only within a session.

It is empty where the kernel put the session in no group of its own, as in some containers.
"""


def give_way() -> None:
    """Lower the priority of this process, unless it is as low already."""
    if os.getpriority(os.PRIO_PROCESS, 0) < DRIVER_NICENESS:
        os.setpriority(os.PRIO_PROCESS, 0, DRIVER_NICENESS)
    # Only if the session is the driver's own: that of a terminal stays as it is.
    if os.getsid(0) == os.getpid():
        _session_gives_way()


def _session_gives_way() -> None:
    # Other systems, and kernels without such groups, have no such file.
    with suppress(OSError):
        group = _SESSION.read_text().split()
        if group and int(group[-1]) < DRIVER_NICENESS:
            _SESSION.write_text(str(DRIVER_NICENESS))
