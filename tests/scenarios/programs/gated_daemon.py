"""A daemon that stops once amid the publication of a chunk, and waits there.

``gated_daemon.py POINT CALL FOLDER ARGUMENTS OF DSSD``: at the CALLth pass of the point, counted
from 0, the file FOLDER/reached appears, and it goes on once FOLDER/go is there. A later life of it
does not stop again. Leases are short, segments small, and retention looks often.
"""

import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import dssd.jobs.jobs
import dssd.machines.job
import dssd.topics.retention
from dssd.__main__ import main
from dssd.log.adopt import adopter
from dssd.log.settings import LogSettings

LEASE_MS = 1_500
SEGMENT_BYTES = 32 << 10
LOOK_S = 0.005

Work = Callable[..., Any]


class Gate:
    """Where it stops."""

    def __init__(self, call: int, folder: Path) -> None:
        self._call = call
        self._folder = folder
        self._passes = count()

    def passed(self) -> None:
        """Stop here, if it is the call to stop at. Called in a thread."""
        reached = self._folder / "reached"
        if next(self._passes) != self._call or reached.exists():
            return
        reached.touch()
        while not (self._folder / "go").exists():
            time.sleep(LOOK_S)


def _behind(work: Work, gate: Gate) -> Work:
    def gated(*arguments: object) -> object:
        outcome = work(*arguments)
        gate.passed()
        return outcome

    return gated


def _before(work: Work, gate: Gate) -> Work:
    def gated(*arguments: object) -> object:
        gate.passed()
        return work(*arguments)

    return gated


def _copied(work: Work, gate: Gate) -> Work:
    def copying(*arguments: object) -> object:
        made = work(*arguments)
        write_piece = made.write_piece

        def gated() -> int:
            written: int = write_piece()
            if not written:
                gate.passed()
            return written

        made.write_piece = gated
        return made

    return copying


POINTS = {
    "copied": ("Copying", _copied),
    "stamped": ("stamp_copy", _behind),
    "committed": ("settle", _before),
    "never": ("settle", lambda work, _gate: work),
}


def close(point: str, call: int, folder: Path) -> None:
    """Put the gate where the point is."""
    name, gated = POINTS[point]
    setattr(adopter, name, gated(getattr(adopter, name), Gate(call, folder)))


if __name__ == "__main__":
    for module in (dssd.jobs.jobs, dssd.machines.job):
        vars(module)["JOB_LEASE_MS"] = LEASE_MS
    vars(dssd.topics.retention)["RETENTION_INTERVAL_S"] = 0.1
    made = LogSettings.__init__
    made.__defaults__ = (SEGMENT_BYTES, *(made.__defaults__ or ())[1:])
    close(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
    sys.exit(main(sys.argv[4:]))
