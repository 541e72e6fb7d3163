"""A program: an interpreter that has imported what our programs need, and forks one for each start.

``python ready_interpreter.py DESCRIPTOR``: on that socket come starts, each with the three standard
streams of the new process, and its number goes back. `support.started_program` asks it.

Invariant: it has no event loop and no thread but that of an allocator which nothing of ours uses,
and it runs nothing of ours but imports, and what is cached as they are; so a process that it forks
is as one that has just come to its first line. At its end it waits for its threads, runs what was
registered for its exit and writes out its streams as any other; only its memory is left to the
kernel.
"""

import atexit
import fcntl
import gc
import json
import os
import runpy
import socket
import sys
import termios
from pathlib import Path
from typing import Any

from dssd.loading import loading

START_BYTES_MAX = 1 << 17
STREAMS = 3

_codes: list[int] = []
"""With what the program that was run exits, once it does."""


def _end_at_once() -> None:
    """End the process without taking apart what is loaded: half of what a short program costs.

    Where a stream cannot be written out, the end of the interpreter tells it.
    """
    if not _codes:
        return
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None and not stream.closed:
                stream.flush()
    except OSError:
        return
    os._exit(_codes[0])


# What is registered first is called last.
atexit.register(_end_at_once)

with loading():
    import uvloop  # noqa: F401 - a daemon loads it with its loop

    import dss_bulk.local_engine  # noqa: F401 - and with it what reads and writes files
    import dss_client  # noqa: F401
    import dssctl.invocation  # noqa: F401
    import dssd.check.command
    import dssd.config
    import dssd.process  # noqa: F401
    from dssd.store.schema import tables

# A store compiles the functions of its tables when it is opened: a fifth of a daemon's start.
tables()
# It stays, as what was loaded does.
gc.freeze()


def next_start(starts: socket.socket) -> dict[str, Any]:
    """Fork for each start that comes; returns in the new process, with what it shall run."""
    while True:
        message, streams, _, _ = socket.recv_fds(starts, START_BYTES_MAX, STREAMS)
        if not message:
            sys.exit()  # Whoever asked has ended.
        (told, tells), (may_run, lets_run) = os.pipe(), os.pipe()
        between = os.fork()
        if between == 0:
            if child := os.fork():
                os.write(tells, child.to_bytes(8))
                os._exit(0)
            os.read(may_run, 1)
            for descriptor in (told, tells, may_run, lets_run):
                os.close(descriptor)
            starts.close()
            _take_streams(streams)
            return dict(json.loads(message))
        # The child belongs to whoever asked as soon as what stood between is gone.
        os.waitpid(between, 0)
        os.write(lets_run, b"!")
        starts.send(os.read(told, 8))
        for descriptor in (told, tells, may_run, lets_run, *streams):
            os.close(descriptor)


def _take_streams(streams: list[int]) -> None:
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)


def run(
    arguments: list[str], environment: dict[str, str], directory: str, *, terminal: bool
) -> None:
    """Do what ``python ARGUMENTS`` does: ``-m MODULE ...`` or ``FILE ...``."""
    if terminal:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    if arguments[0] == "-m":
        sys.path[0] = directory
        sys.argv[:] = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(arguments[0]).parent)
        sys.argv[:] = arguments
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as starts:
        start = next_start(starts)
    try:
        run(**start)
        _codes.append(0)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            _codes.append((end.code or 0) & 0xFF)
        raise
