"""``dssd`` that knows how long the longest step of its loop was, in processor time of its thread.

Usage: stepped_daemon.py ARGUMENTS OF dssd

At SIGUSR1 it prints a line of JSON, the longest step since the last one in milliseconds and what it
was, and begins anew. A step is one callback of the loop: what runs until everything else may. It
runs on the loop of asyncio, for what uvloop runs cannot be timed one by one.
"""

import asyncio
import json
import os
import signal
import sys
import time

longest_ns, longest = 0, ""


def timed(run: "asyncio.events.Handle") -> None:
    """Run a callback, and keep how long it took if none took longer."""
    global longest_ns, longest
    began_ns = time.thread_time_ns()
    _run(run)
    took_ns = time.thread_time_ns() - began_ns
    if took_ns > longest_ns:
        longest_ns, longest = took_ns, repr(run)


def say(*_: object) -> None:
    """The longest one since this was asked before."""
    global longest_ns, longest
    line = json.dumps({"longest_ms": longest_ns / 1e6, "was": longest})
    longest_ns, longest = 0, ""
    os.write(1, f"{line}\n".encode())


_run = asyncio.events.Handle._run
asyncio.events.Handle._run = timed  # type: ignore[assignment, method-assign]
sys.modules["uvloop"] = None  # type: ignore[assignment]
signal.signal(signal.SIGUSR1, say)

from dssd.__main__ import main  # noqa: E402 - it must not find uvloop

sys.exit(main())
