"""A program: an interpreter that has imported what our programs need, and forks for each start.

``python ready_interpreter.py DESCRIPTOR``: requests to start come over that socket, each with the
three standard streams of the new process, and its process id goes back. `support.started_program`
makes them.

Invariant: it has no event loop, and no thread except that of an allocator which nothing of ours
uses. Of our code it runs only imports, and what they cache; so a process that it forks is like one
that has just reached its first line. At its end such a process waits for its threads, runs its exit
functions and flushes its streams as any other; only its memory is left to the kernel.
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
"""The exit code of the program, once it has ended."""


def _end_at_once() -> None:
    """End the process without tearing down what is loaded, which is half the cost of a short
    program.

    If a stream cannot be flushed, the interpreter's own end reports it.
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


# Exit functions run in reverse order, so this one runs last.
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
# What was loaded stays, so no collection needs to look at it.
gc.freeze()


def next_start(starts: socket.socket) -> dict[str, Any]:
    """Fork for each request; returns in the new process, with what it is to run."""
    while True:
        message, streams, _, _ = socket.recv_fds(starts, START_BYTES_MAX, STREAMS)
        if not message:
            sys.exit()  # The process that sends requests has ended.
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
        # The child becomes one of the requesting process as soon as the process between has ended.
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
