"""The daemon's process: event loop, signals, file modes, and sudden ends.

Invariant: the process ends within 12 s of the first signal, and at once after the second. A sudden
end loses no acknowledged record: acknowledged records are durable already.
"""

import asyncio
import ctypes
import faulthandler
import gc
import logging
import os
import shlex
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NoReturn

from dss_core.errors import (
    DataDirectoryReplaced,
    DiskFailed,
    DssError,
    StoreDamaged,
    StoreUnguarded,
)
from dssd.addresses import Address
from dssd.clock import Clock
from dssd.config import Config
from dssd.daemon import Daemon, Hooks
from dssd.descriptors import raise_limit
from dssd.exception_groups import EXIT_SOFTWARE, condition_in, explained
from dssd.life import End
from dssd.log_lines import LogFormat, log_condition, write_lines
from dssd.log_writer import LogWriter
from dssd.service.notify import ServiceManager
from dssd.version import version

COLLECT_AFTER_OBJECTS = 5_000
COLLECT_MIDDLE_AFTER = 5
COLLECT_ALL_AFTER = 100
"""Thresholds of Python's garbage collector for its three generations. A full collection stops
everything for 100 ms and more, and hardly ever finds garbage."""


STOP_HARD_S = 12.0
"""A stop that hangs for so long ends the process: acknowledged records are durable already."""


THREAD_SWITCH_S = 0.0005
"""Python's thread switch interval. While the event loop is busy, each step of a group commit waits
this long for the interpreter's lock; with Python's default of 5 ms a commit waited tens of
milliseconds."""

MALLOC_MMAP_ABOVE_BYTES = 8 << 20
"""Blocks up to this come from the heap: a fresh mapping for each large message costs its page
faults (measured: half of the daemon's system time)."""

MALLOC_KEEP_BYTES = 32 << 20
"""Free memory that the heap keeps at its end instead of returning and taking it again."""


_M_TRIM_THRESHOLD = -1  # as malloc.h has them
_M_MMAP_THRESHOLD = -3

_LOG = logging.getLogger(__name__)

PRIVATE_UMASK = 0o077
"""Sockets and files are for the daemon's own user."""

EXIT_SIGNALLED = 128
"""Plus the signal's number: what a shell shows of a process that a signal ended."""


def serve(config: Config, *, temporary: Path | None = None) -> None:
    """Run a daemon until a signal stops it.

    The caller removes the temporary directory; a sudden end does it here, as far as it can.

    Raises:
        What `dssd.daemon.Daemon.run` raises.
    """
    os.umask(PRIVATE_UMASK)
    raise_limit()
    keep_large_blocks()
    collect_seldom()
    sys.setswitchinterval(THREAD_SWITCH_S)
    log = write_lines(config.log_format)
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_run(config, temporary, log))
    except (DssError, BaseExceptionGroup) as failure:
        log.leave_nothing_out()
        if config.log_format is LogFormat.TEXT:
            raise
        raise SystemExit(_log_failure(failure)) from failure
    finally:
        log.flush()


def _log_failure(failure: BaseException) -> int:
    """Log what ends the daemon as any other line; returns the exit code."""
    condition = condition_in(failure)
    if condition is None:
        _LOG.error("unexpected error", exc_info=failure, extra={"event": "daemon.crashed"})
        return EXIT_SOFTWARE
    log_condition(condition)
    return condition.exit_code


def collect_seldom() -> None:
    """Run Python's cyclic garbage collector less often than by default."""
    gc.set_threshold(COLLECT_AFTER_OBJECTS, COLLECT_MIDDLE_AFTER, COLLECT_ALL_AFTER)


def keep_large_blocks() -> None:
    """Let glibc serve blocks of a frame's size from its heap; other libraries are left alone."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, MALLOC_MMAP_ABOVE_BYTES)
        mallopt(_M_TRIM_THRESHOLD, MALLOC_KEEP_BYTES)


async def _run(config: Config, temporary: Path | None, log: LogWriter) -> None:
    failed = partial(_fail_stop, config.log_format, log, temporary)
    manager = ServiceManager.found(os.environ)

    def listening(addresses: tuple[Address, ...], before: End) -> None:
        _announce(addresses, before, config.log_format, paste=temporary is not None)
        if manager is not None:
            manager.ready("serving")

    def ending() -> None:
        _end_in_time()
        if manager is not None:
            manager.stopping()

    hooks = Hooks(listening=listening, ending=ending, failed=failed)
    daemon = Daemon(config, hooks, Clock(), manager)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _on_signal, daemon, number, temporary)
    await daemon.run()


def _on_signal(daemon: Daemon, number: signal.Signals, temporary: Path | None) -> None:
    if daemon.is_stopping():
        _LOG.warning("second signal: ending at once", extra={"event": "daemon.cut-short"})
        logging.shutdown()
        _end_at_once(EXIT_SIGNALLED + number, temporary)
    daemon.stop()


def _end_in_time() -> None:
    """End the process, with the traceback of every thread, should it hang from here on.

    The timer is never disarmed, for the interpreter's own end may hang too.
    """
    faulthandler.dump_traceback_later(STOP_HARD_S, exit=True)


def _announce(addresses: tuple[Address, ...], before: End, form: LogFormat, *, paste: bool) -> None:
    """Tell the addresses; for an address chosen at random, also a line to paste."""
    gc.freeze()  # Objects of the start live on: keep the garbage collector from scanning them.
    texts = [str(address) for address in addresses]
    where = ", ".join(texts)
    if form is LogFormat.JSON:
        fields = {"addresses": texts, "before": before.how}
        told = {"event": "daemon.listening", "fields": fields}
        _LOG.info("dssd %s%s listening on %s", version(), before, where, extra=told)
        return
    sys.stderr.write(f"dssd {version()}{before} listening on {where}\n")
    if paste:
        sys.stderr.write(f"export DSSCTL_ENDPOINT={shlex.quote(texts[0])}\n")
    sys.stderr.flush()


def _fail_stop(
    form: LogFormat, log: LogWriter, temporary: Path | None, error: BaseException
) -> None:
    """End the process before what failed can be acknowledged. Runs on any thread."""
    log.leave_nothing_out()
    if form is LogFormat.JSON:
        exit_code = _log_failure(error)
        log.flush()
        _end_at_once(exit_code, temporary)
    if isinstance(error, DiskFailed | StoreDamaged | DataDirectoryReplaced | StoreUnguarded):
        said, exit_code = explained(error), int(error.exit_code)
    else:
        said, exit_code = "".join(traceback.format_exception(error)), EXIT_SOFTWARE
    log.write(said)
    log.flush()
    _end_at_once(exit_code, temporary)


def _end_at_once(exit_code: int, temporary: Path | None) -> NoReturn:
    if temporary is not None:
        shutil.rmtree(temporary, ignore_errors=True)
    os._exit(exit_code)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # not on every platform
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
