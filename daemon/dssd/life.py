"""How a daemon ended: it records its own end as far as it can, and the next one reads the record.

::

    begin ─► running ─┬─► stopped   all parts are closed
                      └─► crashed   with its reason, if the disk takes it

Invariant: the file says that a daemon stopped only where it did. A daemon that reads "running"
follows one that was killed, or one that lost power if the boot id has changed. A start that fails
before it serves leaves the file as it is.
"""

import json
import os
import traceback
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Self

from dss_core.errors import DataDirectoryReplaced
from dssd.clock import Clock
from dssd.data_directory import sync_directory
from dssd.events.kinds import DAEMON_CRASHED, DAEMON_KILLED, DAEMON_STARTED, DAEMON_STOPPED
from dssd.events.limits import EVENT_FIELD_BYTES_MAX
from dssd.events.model import Event
from dssd.events.teller import Teller, tell_if_room
from dssd.exception_groups import EXIT_SOFTWARE, condition_in

LIFE_WRITE_S_MAX = 1.0
"""How long a failing daemon waits for the disk to store the reason: the disk may be the failure."""

LIFE_BYTES_MAX = 4_096
"""What is read of how a daemon ended: it writes some hundred bytes, and a page is read at once."""


LIFE_NAME = "LIFE"
SYSTEM_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class How(StrEnum):
    """How a life ended, or that it has not."""

    UNKNOWN = "unknown"
    RUNNING = "running"
    STOPPED = "stopped"
    KILLED = "killed"
    POWER_LOST = "power-lost"
    CRASHED = "crashed"


@dataclass(frozen=True, slots=True)
class End:
    """How the previous daemon ended."""

    how: How
    at_ms: int = 0
    """By the wall clock; 0: not known."""
    reason: str = ""

    def __str__(self) -> str:
        """After "dssd VERSION", for people."""
        match self.how:
            case How.STOPPED:
                return ", after an orderly stop,"
            case How.KILLED:
                return ", after a kill,"
            case How.POWER_LOST:
                return ", after a loss of power,"
            case How.CRASHED:
                return f", after a crash ({self.reason}),"
            case _:
                return ""


class Life:
    """Keeps the life file of a data directory; enter it while holding the directory's lock."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        self._path = directory.expanduser() / LIFE_NAME
        self._clock = clock
        self._is_running = False
        self.before = End(How.UNKNOWN)

    def __enter__(self) -> Self:
        """Read how the daemon before ended."""
        self.before = _end_in(self._path)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """All parts are closed, after a stop or an error."""
        if error is not None:
            self.crashed(error)
        elif self._is_running:
            self._write(How.STOPPED)

    async def begin(self, teller: Teller, version: str) -> None:
        """The daemon serves from now on. First the event of the previous end is made durable,
        because this overwrites the file."""
        for event in events_of_start(self.before, version):
            await tell_if_room(teller, event)
        self._is_running = True
        self._write(How.RUNNING)

    def crashed(self, error: BaseException) -> None:
        """The daemon ends at once, and does not wait for a disk that hangs. Runs on any thread."""
        is_ours = not isinstance(condition_in(error), DataDirectoryReplaced)
        if self._is_running and is_ours:
            writing = Thread(target=self._write, args=(How.CRASHED, _reason(error)), daemon=True)
            writing.start()
            writing.join(LIFE_WRITE_S_MAX)

    def _write(self, how: How, reason: str = "") -> None:
        said = {"how": how, "at_ms": self._clock.wall_ms(), "reason": reason, "boot": _boot()}
        try:
            self._replace(json.dumps(said))
        except OSError:
            self._overwrite(how, json.dumps(said))

    def _replace(self, text: str) -> None:
        staged = self._path.with_name(f"{LIFE_NAME}.new")
        with staged.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        staged.rename(self._path)
        sync_directory(self._path.parent)

    def _overwrite(self, how: How, text: str) -> None:
        """Overwrite the file in place: a full disk has no room for a new one."""
        try:
            with self._path.open("r+") as file:
                file.write(text)
                file.truncate()
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            if how is not How.CRASHED:  # a later read must not take the old content for this end
                with suppress(OSError):
                    self._path.unlink(missing_ok=True)


def event_of_stop(version: str) -> Event:
    """The event of a stop, told before the event store closes."""
    return Event(DAEMON_STOPPED, "daemon", f"dssd {version} ended as it was told to.")


def events_of_start(before: End, version: str) -> list[Event]:
    """The events of a start: the end of the previous daemon, unless it was a stop, and the start
    itself."""
    fields = {name: str(value) for name, value in asdict(before).items()}
    started = Event(DAEMON_STARTED, "daemon", f"dssd {version}{before} serves.", fields)
    match before.how:
        case How.CRASHED:
            said = f"The daemon before this one crashed: {before.reason}."
            return [Event(DAEMON_CRASHED, "daemon", said, fields), started]
        case How.KILLED | How.POWER_LOST:
            what = "was killed" if before.how is How.KILLED else "lost its power"
            said = f"The daemon before this one {what}; what it had acknowledged is durable."
            return [Event(DAEMON_KILLED, "daemon", said, fields), started]
        case _:
            return [started]


def _end_in(path: Path) -> End:
    if not path.is_file():  # reading a pipe or a device might block
        return End(How.UNKNOWN)
    try:
        with path.open("rb") as file:
            said = json.loads(file.read(LIFE_BYTES_MAX))
        end = End(How(said["how"]), int(said["at_ms"]), str(said["reason"]))
        boot = str(said["boot"])
    except (OSError, ValueError, LookupError, TypeError, ArithmeticError, RecursionError):
        return End(How.UNKNOWN)
    if end.how is How.RUNNING:
        return End(How.KILLED if boot == _boot() else How.POWER_LOST)
    return end


def _boot() -> str:
    """The boot of the system; empty where it tells none."""
    with suppress(OSError):
        return SYSTEM_BOOT_ID.read_text().strip()
    return ""


def _reason(error: BaseException) -> str:
    condition = condition_in(error)
    if condition is not None:
        said = f"exit {condition.exit_code}, {condition.code}: {condition.message.rstrip('.')}"
    else:
        said = f"exit {EXIT_SOFTWARE}, {_unexpected(error)}"
    return said[:EVENT_FIELD_BYTES_MAX]


def _unexpected(error: BaseException) -> str:
    """The first of its errors that is no condition, and where it came up."""
    while isinstance(error, BaseExceptionGroup):
        error = next(each for each in error.exceptions if condition_in(each) is None)
    said = "".join(traceback.format_exception_only(error)).strip().replace("\n", " ")
    frames = traceback.extract_tb(error.__traceback__)
    return f"{said} ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else said
