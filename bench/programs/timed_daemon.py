"""A daemon that knows how long its event loop was held: ``timed_daemon.py FILE ARGUMENTS OF DSSD``.

At SIGUSR1 it writes the longest turn of its loop since the signal before to the file, as JSON: its
processor time, so that what else the machine does is not in it, and what it was. The loop is that
of asyncio, for no other can be looked into; what runs on it is the same.
"""

import asyncio
import json
import signal
import sys
import time
from pathlib import Path

from dssd.__main__ import main

NS_PER_MS = 1e6

Told = tuple[int, str]
_longest: Told = (0, "")
_run = asyncio.events.Handle._run


def _timed(handle: asyncio.events.Handle) -> None:
    global _longest
    began_ns = time.thread_time_ns()
    _run(handle)
    took_ns = time.thread_time_ns() - began_ns
    if took_ns > _longest[0]:
        _longest = took_ns, repr(handle)


def _tell(file: Path) -> None:
    global _longest
    (took_ns, what), _longest = _longest, (0, "")
    unfinished = file.with_suffix(".part")
    unfinished.write_text(json.dumps({"longest_ms": took_ns / NS_PER_MS, "what": what}))
    unfinished.rename(file)


if __name__ == "__main__":
    told = Path(sys.argv[1])
    sys.modules["uvloop"] = None  # type: ignore[assignment]  # as where it is not installed
    asyncio.events.Handle._run = _timed  # type: ignore[method-assign, assignment]
    signal.signal(signal.SIGUSR1, lambda *_: _tell(told))
    sys.exit(main(sys.argv[2:]))
