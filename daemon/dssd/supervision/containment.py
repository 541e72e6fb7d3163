"""Contains errors of parts outside the core: services, tasks, questions. They do not end the
daemon.

An unforeseen exception ends only the run, scrape or call that raised it; a service restarts after a
pause. It is told with its traceback in the log, as an event, and in a metric.

Invariant: an exception of the core is raised again, because the state that it left is unknown; so
are a failed disk, and anything that is no `Exception`. An exception belongs to the core if it was
raised in a package of the core, or in a library called from there: a question that meets a broken
leader ends the daemon, a question that divides by zero does not. An unforeseen condition does not
mean broken state.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from traceback import walk_tb

from dss_core.errors import (
    DataDirectoryReplaced,
    DiskFailed,
    DssError,
    InternalError,
    StoreDamaged,
    StoreUnguarded,
)
from dssd.descriptors import shortage_in
from dssd.events.kinds import INTERNAL_ERROR
from dssd.events.model import Event, Note

SERVICE_PAUSE_S = 1.0
SERVICE_PAUSE_S_MAX = 60.0
"""Pause before a service restarts after an unforeseen error; doubles each time, up to a minute. A
service that ran for a minute starts with the first pause again."""

TRACEBACK_EVERY_S = 10.0
"""At most one traceback for each part is logged in this time, so that a caller that triggers a
thousand errors a second does not fill the log. All are counted."""

UNFORESEEN_CHARACTERS_MAX = 300
"""Of an unforeseen error, in what is told of it; the log has all."""


_LOG = logging.getLogger(__name__)

_CORE = (
    "dssd.leaders", "dssd.log", "dssd.machines", "dssd.sessions", "dssd.store",
    "dssd.subscriptions", "dssd.topics",
)  # fmt: skip
_BESIDE = (
    "dssd.leaders.dead_letters", "dssd.leaders.filtered_lag", "dssd.leaders.gone_streams",
    "dssd.leaders.lag", "dssd.leaders.queue_room", "dssd.leaders.retention_ahead",
    "dssd.leaders.retention_losses", "dssd.leaders.topic_readers", "dssd.log.upkeep.scrub",
    "dssd.machines.job", "dssd.machines.schedule", "dssd.machines.watch_board",
    "dssd.topics.located", "dssd.topics.queue_trims", "dssd.topics.retention",
)  # fmt: skip
"""Modules in packages of the core that only read, or that clean up and can restart."""

_ENDING = (DataDirectoryReplaced, DiskFailed, StoreDamaged, StoreUnguarded)
"""Conditions after which nothing can be promised any more."""


class StateUnknown(Exception):
    """Memory may differ from what was committed, so the daemon must end."""


@contextmanager
def between_store_and_memory() -> Iterator[None]:
    """For code that updates memory after a commit: any exception counts as the core's.

    Raises:
        StateUnknown: it raised something.
    """
    try:
        yield
    except Exception as error:
        raise StateUnknown(str(error)) from error


contained: Counter[str] = Counter()
"""How often this process went on after an exception, by the part that raised it."""

_logged_s: dict[str, float] = {}
"""When the last traceback of a part was logged; bounded by the parts."""


def contain(part: str, error: Exception, note: Note) -> InternalError:
    """Contain an exception of a part; returns it as a condition.

    Raises:
        Exception: the same, if it is the core's.
    """
    if is_the_cores(error):
        raise error
    unforeseen = _in_words(error)
    contained[part] += 1
    if monotonic() - _logged_s.get(part, -TRACEBACK_EVERY_S) >= TRACEBACK_EVERY_S:
        _logged_s[part] = monotonic()
        told = {"event": "internal.traceback", "fields": {"part": part}}
        _LOG.error("unforeseen error in %s", part, exc_info=error, extra=told)
    sentence = f"An unforeseen error ended it, and the daemon goes on: {unforeseen}."
    note(Event(INTERNAL_ERROR, part, sentence, {"error": unforeseen}))
    return InternalError(part=part, error=unforeseen)


Service = tuple[str, Callable[[], Awaitable[None]]]
"""The part that it is, and what runs it from the beginning."""


async def kept(part: str, run: Callable[[], Awaitable[None]], note: Note) -> None:
    """Run a service until cancelled; restart it after an exception, unless that came as it was
    cancelled: then it ends all the same."""
    contained[part] += 0  # it is shown before anything happens
    pause_s = SERVICE_PAUSE_S
    while True:
        began_s = monotonic()
        try:
            return await run()
        except Exception as error:
            contain(part, error, note)
            own = asyncio.current_task()
            if own is not None and own.cancelling():
                raise asyncio.CancelledError from error
        if monotonic() - began_s > SERVICE_PAUSE_S_MAX:
            pause_s = SERVICE_PAUSE_S
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, SERVICE_PAUSE_S_MAX)


def is_the_cores(error: BaseException) -> bool:
    """Whether the exception belongs to the core and ends the daemon."""
    if isinstance(error, BaseExceptionGroup):
        return any(is_the_cores(each) for each in error.exceptions)
    if isinstance(error, DssError):
        return isinstance(error, _ENDING)
    if isinstance(error, StateUnknown) or not isinstance(error, Exception):
        return True
    if shortage_in(error) is not None:
        return False
    names = [frame.f_globals.get("__name__", "") for frame, _ in walk_tb(error.__traceback__)]
    own = [name for name in names if _is_in(name, ("dssd",))]
    return bool(own) and _is_in(own[-1], _CORE) and not _is_in(own[-1], _BESIDE)


def _is_in(module: str, rooms: tuple[str, ...]) -> bool:
    return any(module == room or module.startswith(f"{room}.") for room in rooms)


def _in_words(error: BaseException) -> str:
    """The exception on one line; of several that were raised together, the first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    text = " ".join(str(error).split()).rstrip(".")
    return f"{type(error).__name__}{f': {text}' if text else ''}"[:UNFORESEEN_CHARACTERS_MAX]
