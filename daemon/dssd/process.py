"""What a daemon does to its own process: event loop, signals, file modes, and sudden ends.

Invariant: however a stop goes, the process is gone 12 s after the first signal, and at once after
the second. A sudden end loses nothing that was acknowledged: that is durable already.
"""

import asyncio
import ctypes
import faulthandler
import logging
import os
import signal
import sys
from collections.abc import Callable

from dss_core.errors import DiskFailed, ExitCode
from dssd.addresses import Address
from dssd.clock import Clock
from dssd.config import Config
from dssd.daemon import Daemon, Hooks
from dssd.limits import MALLOC_KEEP_BYTES, MALLOC_MMAP_ABOVE_BYTES, STOP_HARD_S
from dssd.version import version

_M_TRIM_THRESHOLD = -1  # as malloc.h has them
_M_MMAP_THRESHOLD = -3

_LOG = logging.getLogger(__name__)

PRIVATE_UMASK = 0o077
"""Sockets and files are for the daemon's own user."""

EXIT_SIGNALLED = 128
"""Plus the signal's number: what a shell shows of a process that a signal ended."""


def serve(config: Config) -> None:
    """Run a daemon until a signal stops it.

    Raises:
        What `dssd.daemon.Daemon.run` raises.
    """
    os.umask(PRIVATE_UMASK)
    _keep_large_blocks()
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_run(config))


def _keep_large_blocks() -> None:
    """Let glibc serve blocks of a frame's size from its heap; other libraries are left alone."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, MALLOC_MMAP_ABOVE_BYTES)
        mallopt(_M_TRIM_THRESHOLD, MALLOC_KEEP_BYTES)


async def _run(config: Config) -> None:
    hooks = Hooks(listening=_announce, ending=_end_in_time, disk_failed=_fail_stop)
    daemon = Daemon(config, hooks, Clock())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _on_signal, daemon, number)
    await daemon.run()


def _on_signal(daemon: Daemon, number: signal.Signals) -> None:
    if daemon.is_stopping():
        _LOG.warning("second signal: ending at once")
        logging.shutdown()
        os._exit(EXIT_SIGNALLED + number)
    daemon.stop()


def _end_in_time() -> None:
    """End the process, with the traceback of every thread, should it hang from here on.

    The timer is never disarmed, for the interpreter's own end may hang too.
    """
    faulthandler.dump_traceback_later(STOP_HARD_S, exit=True)


def _announce(addresses: tuple[Address, ...]) -> None:
    where = ", ".join(str(address) for address in addresses)
    sys.stderr.write(f"dssd {version()} listening on {where}\n")
    sys.stderr.flush()


def _fail_stop(error: DiskFailed) -> None:
    """End the process before anything else can be acknowledged. Runs on any thread."""
    os.write(sys.stderr.fileno(), f"dssd: {error.message} [{error.code}]\n".encode())
    os._exit(ExitCode.IO_ERROR)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # not on every platform
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
