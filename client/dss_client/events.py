"""Events about records and groups, as the daemon reports them.

Invariant: values in, frozen values out; no wire message leaves this module. Events come in the
order of their numbers; a watch that lost its connection goes on behind the last one that it gave.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from dss_api.values import decoded, number_of
from dss_client._outage_log import Outage
from dss_client._start_point import time_us
from dss_core.errors import PASSING, IllegalArgument, Overloaded

if TYPE_CHECKING:
    from dss_api.v1 import events_pb2
    from dss_client._connection import Connection
_HIGHEST_LIMIT = (1 << 32) - 1
"""What the wire can say; the daemon's own bound is far below it."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened."""

    number: int
    """Rises by one, and is never given again."""
    at_ms: int
    """When it was reported first, by the daemon's wall clock."""
    code: str
    """Such as ``retention.lost``; never changes its meaning."""
    severity: str
    """``info``, ``warning`` or ``error``."""
    subject: str
    """A stream, a group, a client, a file."""
    sentence: str
    """For people, as it was reported last."""
    fields: Mapping[str, str]
    """The figures of the sentence."""
    times: int
    """How often it was reported, the first time included."""
    last_at_ms: int


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events by number."""

    events: tuple[Event, ...]
    last_number: int
    """The number of the newest event, wanted or not: watch on behind it."""


class Events:
    """Reads events; reached as ``client.events``."""

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection

    async def list(
        self,
        *,
        after: int = 0,
        since: str | datetime | None = None,
        severity: str = "info",
        subject: str = "",
        codes: Sequence[str] = (),
        principal: str = "",
        latest: int | None = None,
    ) -> EventPage:
        """The events that are kept.

        Args:
            after: only those with a higher number.
            since: only those that were told at this time or later; a time of the shared grammar.
            severity: only those that are as bad as this, or worse.
            subject: only those whose subject begins with this.
            codes: only those with one of these codes.
            principal: only those that tell what this one did.
            latest: only so many, the last ones.

        Raises:
            IllegalTime, IllegalArgument: an argument breaks its rule.
            DssError: the daemon does not answer.
        """
        from dss_api.v1 import events_pb2

        request = events_pb2.ListEventsRequest(
            after_number=_number(after, "after"),
            since_ms=_since_ms(since),
            severity_min=_severity(severity),
            subject_prefix=subject,
            codes=codes,
            principal=principal,
        )
        if latest is not None:
            return await self._latest(request, _number(latest, "latest"))
        found: list[Event] = []
        while True:
            reply = await self._page(request)
            found += [decoded(each, Event) for each in reply.events]
            if not reply.next_page_token:
                return EventPage(tuple(found), reply.last_number)
            request.page_token = reply.next_page_token

    async def _latest(self, request: "events_pb2.ListEventsRequest", count: int) -> EventPage:
        """The last ones, page by page, the last page first."""
        request.latest, request.limit = True, min(max(1, count), _HIGHEST_LIMIT)
        reply = await self._page(request)
        last_number = reply.last_number
        found = [decoded(each, Event) for each in reply.events]
        while len(found) < count and reply.next_page_token:
            request.page_token = reply.next_page_token
            request.limit = min(count - len(found), _HIGHEST_LIMIT)
            reply = await self._page(request)
            found[:0] = [decoded(each, Event) for each in reply.events]
        return EventPage(tuple(found[max(0, len(found) - count) :]), last_number)

    async def watch(
        self,
        *,
        after: int | None = None,
        since: str | datetime | None = None,
        severity: str = "info",
        subject: str = "",
    ) -> AsyncGenerator[Event, None]:
        """Events as they come; an event that repeats comes once.

        Args:
            after: begin behind this number, with what is kept; else with what comes from now on.
            since, severity, subject: as for `list`.

        Raises:
            IllegalTime, IllegalArgument: an argument breaks its rule.
            DssError: the daemon refuses, or was never there. A connection that is lost later is
                made again.
        """
        from dss_api.v1 import events_pb2
        from dss_client._backoff import Backoff

        request = events_pb2.WatchEventsRequest(
            since_ms=_since_ms(since), severity_min=_severity(severity), subject_prefix=subject
        )
        if after is not None:
            _number(after, "after")
        outage = Outage("the watching of events", self._connection.endpoint.text)
        backoff = Backoff()
        began = False
        while True:
            try:
                newest = (await self.list(latest=0)).last_number
                outage.ended()
                if after is None:
                    after = newest
                elif began and newest < after:
                    after = 0  # the daemon came back with another store: all in it is new
                began = True
                request.after_number = after
                async with aclosing(self._watched(request)) as watched:
                    async for event in watched:
                        backoff.reset()
                        after = event.number
                        yield event
            except PASSING as error:
                began = began or self._connection.outages.are_waited_out(error)
                if not began or isinstance(error, Overloaded):
                    raise
                outage.began(error)
            await asyncio.sleep(backoff.pause_s())

    async def _page(self, request: "events_pb2.ListEventsRequest") -> "events_pb2.ListEventsReply":
        return await self._connection.ask(self._connection.events.List, request)

    async def _watched(
        self, request: "events_pb2.WatchEventsRequest"
    ) -> AsyncGenerator[Event, None]:
        """The events of one call.

        Raises:
            DssError: the daemon refuses, or the connection was lost.
        """
        from dss_client._connection import ConnectionLostError

        call = self._connection.events.Watch(request)
        try:
            while (event := await self._connection.read_or_end(call)) is not None:
                yield decoded(event, Event)
        except ConnectionLostError as lost:
            raise lost.reason from lost
        finally:
            call.cancel()


def _severity(word: str) -> "events_pb2.EventSeverity.ValueType":
    from dss_api.v1 import events_pb2

    number: events_pb2.EventSeverity.ValueType = number_of(
        events_pb2.EventSeverity.DESCRIPTOR, "severity", word
    )
    return number


def _since_ms(since: str | datetime | None) -> int | None:
    return None if since is None else time_us(since) // 1_000


def _number(number: int, argument: str) -> int:
    if not 0 <= number < 1 << 63:
        raise IllegalArgument(argument=f"{argument} {number}", rule="it counts from 0")
    return number
