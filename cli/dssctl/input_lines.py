"""Lines of a file or of standard input, without blocking the event loop or losing one.

A pipe is read when the loop reports data, so a line is published when it comes, not when a buffer
is full, and Ctrl-C works while nothing comes. (Setting O_NONBLOCK instead would change the terminal
of the shell that started us.) Invariant: every byte of the input is in exactly one line; the last
may lack its line end.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager

from dss_core.errors import BrokenInputLine, InputUnreadable
from dss_core.limits import RECORD_BYTES_MAX

INPUT_LINE_BYTES_MAX = 2 * RECORD_BYTES_MAX
"""The longest line: a record in JSON, with base64, and room for its field names."""


INPUT_CHUNK_BYTES = 256 << 10
"""How much is read from the input at once: a few hundred lines."""


STANDARD_INPUT = "-"


@contextmanager
def opened(path: str) -> Iterator[int]:
    """The input as a file descriptor; ``-`` is standard input.

    Raises:
        InputUnreadable: there is no such file, or it may not be read.
    """
    if path == STANDARD_INPUT:
        yield sys.stdin.fileno()
        return
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as refused:
        raise InputUnreadable(path=path, reason=refused.strerror) from refused
    try:
        yield descriptor
    finally:
        os.close(descriptor)


async def lines(
    path: str, descriptor: int, read_bytes: Callable[[int], None]
) -> AsyncIterator[tuple[int, bytes]]:
    """Every line with its number from 1, without its line end; reports the bytes that it has read.

    Raises:
        BrokenInputLine: a line is longer than any record can be.
        InputUnreadable: reading failed.
    """
    number = 0
    rest = b""
    while chunk := await _chunk(path, descriptor):
        read_bytes(len(chunk))
        complete = (rest + chunk).split(b"\n")
        rest = complete.pop()
        for line in complete:
            number += 1
            yield number, line
        if len(rest) > INPUT_LINE_BYTES_MAX:
            reason = f"it is longer than {INPUT_LINE_BYTES_MAX} bytes"
            raise BrokenInputLine(line=number + 1, reason=reason)
    if rest:
        yield number + 1, rest


async def _chunk(path: str, descriptor: int) -> bytes:
    """The bytes that can be read now; waits for some, and is empty at the end."""
    await _readable(descriptor)
    try:
        return os.read(descriptor, INPUT_CHUNK_BYTES)
    except OSError as failed:
        raise InputUnreadable(path=path, reason=failed.strerror) from failed


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    try:
        loop.add_reader(descriptor, ready.set)
    except PermissionError:
        # A regular file cannot be waited for, and need not be.
        await asyncio.sleep(0)
        return
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)
