"""A recording: a line of JSON an item, so that the same can be seen again.

Invariant: reading gives items that are equal to the written ones; a file that is no recording of
this version is refused before anything of it is shown. The file may have been written by anybody:
only objects of the classes named here are made from it.
"""

import dataclasses
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from dss_client import (
    DaemonStatus,
    Event,
    Group,
    Held,
    Job,
    Operation,
    PeerHeld,
    Quarantined,
    Rates,
    Reason,
    SessionSummary,
    StorageTopic,
    StreamBounds,
    Stuck,
    Topic,
    TopicSummary,
    UnreadLoss,
    Verdict,
    WatchedGrant,
    WatchedLag,
    WatchedMember,
    WatchKey,
    WatchUpdate,
)
from dss_client.group_values import Fates
from dss_client.operation_values import OperatedStream
from dss_client.schedules import Schedule, ScheduleRun
from dss_core.errors import DocumentUnreadable, InputUnreadable, OutputUnwritable
from dss_core.progress import Progress
from dssctl.top.feed.clock import wall_ms
from dssctl.top.model.picture import Happened, Listed, Lost, Stands, Stood, Ticked, Told, Updated

RECORDING_LINE_BYTES_MAX = 64 << 20
"""The longest line of a recording that is read: the first picture of 65,536 streams is shorter."""


RECORDING_BYTES_MAX = 1 << 30
"""The largest recording; then it ends, and says so. A day of a busy daemon."""


FORMAT = 1
_HEADER = "dssctl-top"
_CLASSES: Mapping[str, Any] = {
    each.__name__: each
    for each in (
        DaemonStatus, Event, Fates, Group, Happened, Held, Job, Listed, Lost, OperatedStream,
        Operation, PeerHeld, Progress, Quarantined, Rates, Reason, Schedule, ScheduleRun,
        SessionSummary, Stands, Stood, StorageTopic, StreamBounds, Stuck,
        Ticked, Topic, TopicSummary, UnreadLoss, Updated, Verdict, WatchKey, WatchUpdate,
        WatchedGrant, WatchedLag, WatchedMember,
    )
}  # fmt: skip
"""The classes that items are made of."""

_CLASS = "_"
"""The field that names the class of an object; one without is a mapping."""


class Recorder:
    """Writes items as they are reported."""

    def __init__(self, path: str, clock_ms: Callable[[], int] = wall_ms) -> None:
        """Make the file, readable for its owner alone.

        Raises:
            OutputUnwritable: it cannot be written, or is there already.
        """
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as failed:
            raise OutputUnwritable(reason=f"{path}: {failed.strerror}") from failed
        self._file = os.fdopen(descriptor, "wb")
        self._clock_ms = clock_ms
        self._left = RECORDING_BYTES_MAX
        self.failure = ""
        """Why it stopped writing."""
        self._line({_HEADER: FORMAT})

    def write(self, told: Told) -> None:
        """Write one item. If that fails, the recording ends, not the dashboard."""
        self._line({"at_ms": self._clock_ms(), "told": encoded(told)})

    def _line(self, document: object) -> None:
        if self.failure:
            return
        line = json.dumps(document, separators=(",", ":")).encode() + b"\n"
        self._left -= len(line)
        if self._left < 0:
            self.failure = f"the recording is full: {RECORDING_BYTES_MAX} bytes"
            return
        try:
            self._file.write(line)
        except OSError as failed:
            self.failure = f"the recording ended: {failed.strerror}"

    def close(self) -> None:
        """Write the rest."""
        try:
            self._file.close()
        except OSError as failed:
            self.failure = f"the recording ended: {failed.strerror}"


def encoded(value: object) -> Any:  # noqa: ANN401 -- JSON
    """A value as JSON has it."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        name = type(value).__name__
        assert name in _CLASSES, name
        parts = {
            part.name: encoded(getattr(value, part.name)) for part in dataclasses.fields(value)
        }
        return {_CLASS: name, **parts}
    if isinstance(value, tuple | list):
        return [encoded(each) for each in value]
    if isinstance(value, Mapping):
        return {_CLASS: "", **{str(name): encoded(each) for name, each in value.items()}}
    return value


def decoded(value: Any) -> Any:  # noqa: ANN401 -- JSON
    """The value that was encoded.

    Raises:
        ValueError, TypeError, KeyError: it is none.
    """
    if isinstance(value, list):
        return tuple(decoded(each) for each in value)
    if not isinstance(value, dict):
        return value
    parts = {name: decoded(each) for name, each in value.items() if name != _CLASS}
    name = value[_CLASS]
    return _CLASSES[name](**parts) if name else parts


def recorded(path: str) -> Iterator[tuple[int, Told]]:
    """The items of a recording, and when each was told.

    Raises:
        InputUnreadable: there is no such file, or it cannot be read.
        DocumentUnreadable: it is no recording.
    """
    try:
        with Path(path).open("rb") as file:
            yield from _items(file, path)
    except OSError as failed:
        raise InputUnreadable(path=path, reason=failed.strerror) from failed


def _items(file: BinaryIO, path: str) -> Iterator[tuple[int, Told]]:
    header = _parsed(file, path)
    if not isinstance(header, dict) or header.get(_HEADER) != FORMAT:
        raise _unreadable(path, f"its first line is not {{{_HEADER!r}: {FORMAT}}}")
    while (document := _parsed(file, path)) is not None:
        try:
            item = _item(document)
        except (ValueError, TypeError, KeyError, AssertionError) as broken:
            raise _unreadable(path, f"a line of it is no item: {broken}") from broken
        yield item


def _item(document: Any) -> tuple[int, Told]:  # noqa: ANN401 -- JSON
    at_ms, told = document["at_ms"], decoded(document["told"])
    assert isinstance(at_ms, int), "at_ms"
    assert isinstance(told, Told), "told"
    return at_ms, told


def _parsed(file: BinaryIO, path: str) -> Any:  # noqa: ANN401 -- JSON
    line = file.readline(RECORDING_LINE_BYTES_MAX)
    if len(line) >= RECORDING_LINE_BYTES_MAX:
        raise _unreadable(path, f"a line of it is longer than {RECORDING_LINE_BYTES_MAX} bytes")
    if not line.endswith(b"\n"):
        return None  # the end, or a line that was being written when its writer ended
    try:
        return json.loads(line)
    except ValueError as broken:
        raise _unreadable(path, str(broken)) from broken


def _unreadable(path: str, reason: str) -> DocumentUnreadable:
    return DocumentUnreadable(
        path=path, what="a recording", reason=reason, command="dssctl top --record FILE"
    )
