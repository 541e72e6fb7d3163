"""What waits in the retry queues of groups, and what is among their dead letters.

Invariant: frozen values out; no wire message leaves this module. Nothing here joins a group, and
nobody notices a look.
"""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from dss_api.values import decoded, number_of
from dss_core.answers import ErrorCount, KeyCount
from dss_core.errors import IllegalArgument

if TYPE_CHECKING:
    from dss_api.v1 import queues_pb2
    from dss_client._connection import Connection


@dataclass(frozen=True, slots=True)
class QueueEntry:
    """A record in a queue of a group, with what became of it."""

    stream: str
    """The stream of the failed record, ``orders/0/3``."""
    offset: int
    level: str
    """``retry`` or ``dead``."""
    queue_offset: int
    """Of the entry, in its queue."""
    subject: str
    key: bytes | None
    payload_bytes: int
    attempt: int
    """Attempts that failed."""
    redrives: int
    """How often it came back from the dead letters."""
    cause: str
    """``refused``, ``rejected``, ``ack wait``, ``died``, ``given up`` or ``redriven``; in an
    ordered group also ``follows``, of what waits behind a record of its key, and ``no key``."""
    error_type: str
    error: str
    fingerprint: str
    """The same for errors that differ in numbers only; empty where there is no error."""
    client_id: str
    """The client that had it last."""
    appended_at_us: int
    """When the record itself came."""
    first_failure_ms: int
    entered_at_us: int
    """When it came to this queue."""
    due_ms: int
    """When it comes again, of the retry queue."""
    payload: bytes
    """This and the headers: where the entry was asked for whole."""
    headers: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True)
class NewestEntries:
    """The newest entries of a queue."""

    entries: tuple[QueueEntry, ...]
    """The oldest of them first."""
    total: int
    """So many are there."""
    is_cut: bool
    """The daemon answered with fewer than it was asked for, or did not look at all of them."""


@dataclass(frozen=True, slots=True)
class KeyCounts:
    """How many entries there are of each key."""

    keys: tuple[KeyCount, ...]
    """The most frequent first."""
    looked_at_all: bool
    """Else the counts are lower bounds."""


@dataclass(frozen=True, slots=True)
class ErrorCounts:
    """How many entries there are of each error."""

    errors: tuple[ErrorCount, ...]
    """The most frequent first."""
    counted: int
    total: int
    """So many entries are there."""


class Queues:
    """Retry queues and dead letters of groups; reached as ``client.queues``."""

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection

    async def dead_letters(
        self,
        group: str,
        *,
        error: str = "",
        key: bytes | None = None,
        stream: str = "",
        offset: int | None = None,
        client_id: str = "",
        start_us: int | None = None,
        end_us: int | None = None,
        attempt: int = 0,
        whole: bool = False,
    ) -> AsyncGenerator[QueueEntry, None]:
        """The dead letters, stream by stream, the oldest of each first.

        Args:
            group: NAME, NAME@FILTER or ``$share/NAME/FILTER``.
            error: only those of this fingerprint, or of one that begins so, or of this cause.
            key: only those of this key.
            stream: only of records of this stream, ``orders/0/3``.
            offset: with ``stream``: only of the record there.
            client_id: only what this client had last.
            start_us: only what came to the queue then or later.
            end_us: only what came before then.
            attempt: only what failed so often, or more.
            whole: with payloads and headers.

        Raises:
            GroupNotFound, GroupAmbiguous: there is none, or several have the name.
            IllegalArgument, IllegalName: an argument breaks its rule.
        """
        more = client_id, start_us, end_us, attempt
        request = _request(group, "dead", error, key, stream, offset, *more, whole=whole)
        async for entry in self._entries(request):
            yield entry

    async def retries(
        self,
        group: str,
        *,
        error: str = "",
        key: bytes | None = None,
        stream: str = "",
        offset: int | None = None,
        client_id: str = "",
        start_us: int | None = None,
        end_us: int | None = None,
        attempt: int = 0,
        whole: bool = False,
    ) -> AsyncGenerator[QueueEntry, None]:
        """What waits in the retry queues; arguments and errors as of `dead_letters`."""
        more = client_id, start_us, end_us, attempt
        request = _request(group, "retry", error, key, stream, offset, *more, whole=whole)
        async for entry in self._entries(request):
            yield entry

    async def newest(
        self, group: str, count: int, *, level: str = "dead", whole: bool = False
    ) -> NewestEntries:
        """The newest entries of ``dead`` or ``retry``.

        Raises:
            As `dead_letters`.
        """
        request = _request(group, level, whole=whole)
        if not 0 < count < 1 << 32:
            raise IllegalArgument(argument=f"count {count}", rule="it is 1 or more")
        request.newest = count
        reply = await self._connection.ask(self._connection.queues.List, request)
        found = tuple(map(_entry, reply.entries))
        is_cut = bool(reply.next_page_token) or len(found) < min(count, reply.total)
        return NewestEntries(found, reply.total, is_cut)

    async def peek(
        self,
        group: str,
        *,
        stream: str = "",
        offset: int | None = None,
        newest: int = 5,
        level: str = "dead",
    ) -> tuple[QueueEntry, ...]:
        """Whole entries: those of one record, else the newest.

        Raises:
            As `dead_letters`.
        """
        if not stream:
            return (await self.newest(group, newest, level=level, whole=True)).entries
        request = _request(group, level, stream=stream, offset=offset, whole=True)
        found: list[QueueEntry] = []
        async for entry in self._entries(request):
            found.append(entry)
            found = found[-newest:]
        return tuple(found)

    async def errors(
        self, group: str, *, level: str = "dead", at_most: int | None = None
    ) -> ErrorCounts:
        """How many entries there are of each error; of the oldest so many at least, if not of all.

        Raises:
            As `dead_letters`.
        """
        from dss_api.v1 import queues_pb2

        request = queues_pb2.CountErrorsRequest(group=group, level=_level(level))
        counts: dict[tuple[str, str], ErrorCount] = {}
        looked = 0
        while True:
            reply = await self._connection.ask(self._connection.queues.Errors, request)
            for each in reply.errors:
                found = decoded(each, ErrorCount)
                name = found.fingerprint, "" if found.fingerprint else found.cause
                counts[name] = counts[name].with_more(found) if name in counts else found
                looked += found.count
            request.page_token = reply.next_page_token
            if not request.page_token or (at_most is not None and looked >= at_most):
                # What only follows a failure of its key is no error of its own.
                errors = sorted(counts.values(), key=lambda each: (_follows(each), -each.count))
                return ErrorCounts(tuple(errors), looked, reply.total)

    async def keys(
        self, group: str, *, level: str = "dead", error: str = "", at_most: int | None = None
    ) -> KeyCounts:
        """How many entries, of an error, there are of each key; of so many at least, if not of all.

        Raises:
            As `dead_letters`.
        """
        from dss_api.v1 import queues_pb2

        request = queues_pb2.CountKeysRequest(group=group, level=_level(level), error=error)
        counts: dict[bytes | None, KeyCount] = {}
        looked = 0
        while True:
            reply = await self._connection.ask(self._connection.queues.Keys, request)
            for each in reply.keys:
                found = decoded(each, KeyCount)
                known = counts.get(found.key)
                counts[found.key] = found if known is None else known.with_more(found)
                looked += found.count
            request.page_token = reply.next_page_token
            if not request.page_token or (at_most is not None and looked >= at_most):
                keys = sorted(counts.values(), key=lambda each: -each.count)
                return KeyCounts(tuple(keys), not request.page_token)

    async def _entries(
        self, request: "queues_pb2.ListEntriesRequest"
    ) -> AsyncGenerator[QueueEntry, None]:
        while True:
            reply = await self._connection.ask(self._connection.queues.List, request)
            # An older daemon passes over what it does not know of the request.
            for each in filter(partial(_is_meant, request), reply.entries):
                yield _entry(each)
            request.page_token = reply.next_page_token
            if not request.page_token:
                return


def _request(
    group: str,
    level: str,
    error: str = "",
    key: bytes | None = None,
    stream: str = "",
    offset: int | None = None,
    client_id: str = "",
    start_us: int | None = None,
    end_us: int | None = None,
    attempt: int = 0,
    *,
    whole: bool,
) -> "queues_pb2.ListEntriesRequest":
    from dss_api.v1 import queues_pb2

    if offset is not None and not 0 <= offset < 1 << 64:
        raise IllegalArgument(argument=f"offset {offset}", rule="it counts from 0, in 64 bits")
    return queues_pb2.ListEntriesRequest(
        group=group,
        level=_level(level),
        error=error,
        key=key,
        stream=stream,
        offset=offset,
        client_id=client_id,
        start_us=start_us,
        end_us=end_us,
        attempt=attempt,
        whole=whole,
    )


def _is_meant(request: "queues_pb2.ListEntriesRequest", entry: "queues_pb2.QueueEntry") -> bool:
    start_us = request.start_us if request.HasField("start_us") else entry.entered_at_us
    end_us = request.end_us if request.HasField("end_us") else entry.entered_at_us + 1
    is_in_time = start_us <= entry.entered_at_us < end_us
    is_of_client = request.client_id in ("", entry.client_id)
    return is_in_time and is_of_client and entry.attempt >= request.attempt


def _level(word: str) -> "queues_pb2.QueueLevel.ValueType":
    from dss_api.v1 import queues_pb2

    number: queues_pb2.QueueLevel.ValueType = number_of(
        queues_pb2.QueueLevel.DESCRIPTOR, "level", word
    )
    return number


def _entry(message: "queues_pb2.QueueEntry") -> QueueEntry:
    headers = tuple((each.name, each.value) for each in message.headers)
    return decoded(message, QueueEntry, headers=headers)


def _follows(counted: ErrorCount) -> bool:
    return counted.cause == "follows"
