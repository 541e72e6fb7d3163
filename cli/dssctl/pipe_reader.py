"""Whether the reader of a pipe has taken what was written to it.

``head -3`` reads three lines and goes; what lay in the pipe behind them was written by us and shown
to nobody. Invariant: where `taken` has returned, no byte waits in the pipe. Files, terminals and
sockets have everything once it is written.

A pipe of a single page can be written to only when it is empty, so its reader wakes us up; where
the system does not let us make it one, we look again after a pause.
"""

import asyncio
import fcntl
import os
import select
import stat
import struct
import termios

PIPE_BYTES = 4096
"""Size of the pipe that `consume --group` writes to: one page, so it has room only if empty."""

PIPE_LOOK_MS = 1
"""How long the event loop stands still for a reader; one that waits takes some 20 us."""

PIPE_PAUSE_S = 0.001
"""Before a pipe is looked at again that could not be made small."""


class PipeReader:
    """Whoever reads the other end of a descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._is_pipe = stat.S_ISFIFO(os.fstat(descriptor).st_mode)
        self._is_small = False
        self._writable = select.poll()
        self._writable.register(descriptor, select.POLLOUT)

    async def taken(self) -> None:
        """Wait until it has taken everything.

        Raises:
            BrokenPipeError: it is gone, and left something.
        """
        while self._is_pipe and self._waiting_bytes():
            self._make_small()
            # A waiting reader takes it at once; only for a slow reader does the loop get its turn.
            events = self._writable.poll(PIPE_LOOK_MS)
            if events and events[0][1] & (select.POLLERR | select.POLLHUP):
                self._check_left()
                return
            if not events:
                await self._writable_again()
            elif self._waiting_bytes():
                await asyncio.sleep(PIPE_PAUSE_S)

    def _check_left(self) -> None:
        """The reader is gone; it may have taken everything just before."""
        if self._waiting_bytes():
            raise BrokenPipeError

    def _waiting_bytes(self) -> int:
        answer = fcntl.ioctl(self._descriptor, termios.FIONREAD, bytes(4))
        return int(struct.unpack("i", answer)[0])

    def _make_small(self) -> None:
        """One page; refused while more than that is in it."""
        if self._is_small:
            return
        try:
            fcntl.fcntl(self._descriptor, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        except (OSError, AttributeError):  # the latter: not Linux
            return
        self._is_small = True

    async def _writable_again(self) -> None:
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        loop.add_writer(self._descriptor, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_writer(self._descriptor)
