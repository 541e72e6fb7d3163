"""The driver of the local engine, which stops once at a phase of its work, and waits there.

``held_driver.py PHASE PASS JOB ENDPOINT``: before the PASSth pass of the phase, counted from 0, it
says the phase on stdout, and goes on once a line comes on stdin, or stdin ends.
"""

import sys
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

import dss_bulk.__main__ as program
from dss_bulk.staging import Staging
from dss_client.jobs import Jobs, Lease

PHASES: dict[str, tuple[type, str]] = {
    "acquiring": (Jobs, "drive"),
    "reading": (Staging, "__enter__"),
    "staging": (Staging, "finish"),
    "committing": (Lease, "commit"),
}
"""What comes next where it stops."""


def hold(phase: str, before: int) -> None:
    """Let it stop there."""
    owner, name = PHASES[phase]
    work: Callable[..., Awaitable[object] | object] = getattr(owner, name)
    passes = count()

    def held(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - as of what it holds
        if next(passes) == before:
            sys.stdout.write(phase + "\n")
            sys.stdout.flush()
            sys.stdin.readline()
        return work(*arguments, **named)

    setattr(owner, name, held)


if __name__ == "__main__":
    hold(sys.argv[1], int(sys.argv[2]))
    sys.argv[1:] = [sys.argv[3], "--endpoint", sys.argv[4]]
    sys.exit(program.main())
