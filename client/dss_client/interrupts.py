"""Ctrl-C, for programs whose loop may have nothing to do for hours.

`asyncio.run` hears of a signal between two steps of Python. One that comes after the last step
before the loop waits is heard with the next event, which a program that only watches may never
have. Invariant: how signals are handled is left to whoever handles them.
"""

import asyncio
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SIGNALS_READ = 512
"""Numbers of signals taken at once; nobody looks at them."""


@contextmanager
def heard_at_once() -> Iterator[None]:
    """Let every signal wake the running loop until the block ends; in a main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    reads, writes = socket.socketpair()
    with reads, writes:
        reads.setblocking(False)
        writes.setblocking(False)
        before = signal.set_wakeup_fd(writes.fileno(), warn_on_full_buffer=False)
        loop.add_reader(reads, reads.recv, SIGNALS_READ)
        try:
            yield
        finally:
            loop.remove_reader(reads)
            signal.set_wakeup_fd(before)
