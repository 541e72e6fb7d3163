"""Why a daemon that is there does not answer: perhaps its process is stopped.

A stopped process (SIGSTOP, Ctrl-Z, a debugger) keeps its socket, so that connections are made and
nothing is answered. Only a unix socket tells whose it is. Invariant: asking never waits.
"""

import socket
import struct
from pathlib import Path

from dss_client._endpoint import resolve
from dss_core.errors import DaemonStopped, TimedOut

_CREDENTIALS = struct.Struct("3i")
"""Process, user and group of the listener."""


def late(endpoint: str | None, *, what: str, seconds: float) -> TimedOut:
    """The error for a call that was not answered in time."""
    process = stopped_process(endpoint)
    if process is None:
        return TimedOut(what=what, seconds=f"{seconds:g}")
    return DaemonStopped(what=what, seconds=f"{seconds:g}", process=process)


def stopped_process(endpoint: str | None) -> int | None:
    """The number of the process that listens there, if it is stopped; None where unknown."""
    target = resolve(endpoint).target
    if not target.startswith("unix:") or not hasattr(socket, "SO_PEERCRED"):
        return None
    try:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.setblocking(False)
            probe.connect(target.removeprefix("unix:"))
            told = probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        process: int = _CREDENTIALS.unpack(told)[0]
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return None
    return process if state in ("T", "t") else None
