"""The longest step of a daemon's loop, in processor time: so nothing of others is in it."""

import asyncio
import json
import signal
from pathlib import Path

from processes import Daemon, within

PROGRAM = str(Path(__file__).parent / "programs" / "stepped_daemon.py")
"""The daemon to ask: ``running_daemon(program=(PROGRAM,))``."""
ANSWER_SECONDS_MAX = 10.0


async def longest_ms(daemon: Daemon) -> float:
    """Since this was asked before."""
    before = daemon.last_line
    daemon.send_signal(signal.SIGUSR1)
    async with within(ANSWER_SECONDS_MAX, "the longest step"):
        while (line := daemon.last_line) is before:  # noqa: ASYNC110 - a process says it
            await asyncio.sleep(0.005)
    return float(json.loads(line)["longest_ms"])
