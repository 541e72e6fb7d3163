"""The servicer of `Events`: decodes, asks the events, encodes."""

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import Any

import grpc.aio

from dss_api.v1 import events_pb2, events_pb2_grpc
from dss_api.values import encoded, word_of
from dss_core.errors import IllegalArgument, Overloaded
from dssd.events.events import Events
from dssd.events.limits import EVENTS_LISTED_MAX
from dssd.events.model import KeptEvent, Severity
from dssd.events.selection import EventSelection

EVENT_WATCHES_MAX = 64
"""Calls that follow the events: each reads the store after a change."""


Context = grpc.aio.ServicerContext[Any, Any]

HIGHEST_NUMBER = (1 << 63) - 1
"""The store keeps signed 64-bit integers."""


class EventsServicer(events_pb2_grpc.EventsServicer):
    """Serves what operators ask of events."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._watches = 0

    async def List(
        self, request: events_pb2.ListEventsRequest, context: Context
    ) -> events_pb2.ListEventsReply:
        """The wanted events by number, a page at a time, or the last of them."""
        last_number = self._events.last_number
        limit = min(request.limit or EVENTS_LISTED_MAX, EVENTS_LISTED_MAX)
        if request.latest:
            events, token = await self._latest(request, limit)
        else:
            events, token = await self._earliest(request, limit)
        return events_pb2.ListEventsReply(
            events=map(event_message, events),
            next_page_token=token,
            last_number=max([last_number, *(each.number for each in events)]),
        )

    async def _earliest(
        self, request: events_pb2.ListEventsRequest, limit: int
    ) -> tuple[Sequence[KeptEvent], str]:
        """A page, and the token of the next one: the number behind which it begins."""
        after = max(_number(request.after_number), _token(request.page_token) or 0)
        page = await self._events.first_after(_selection(request), after, limit)
        return page.events, "" if page.is_whole else str(page.last)

    async def _latest(
        self, request: events_pb2.ListEventsRequest, limit: int
    ) -> tuple[Sequence[KeptEvent], str]:
        """A page, and the token of the one before it: the number with which it ends."""
        after, up_to = _number(request.after_number), _token(request.page_token)
        found = await self._events.last_of(
            _selection(request), HIGHEST_NUMBER if up_to is None else up_to, limit
        )
        wanted = [each for each in found if each.number > after]
        is_last = len(wanted) < limit or wanted[0].number == 1
        return wanted, "" if is_last else str(wanted[0].number - 1)

    async def Watch(
        self, request: events_pb2.WatchEventsRequest, context: Context
    ) -> AsyncGenerator[events_pb2.Event, None]:
        """The wanted events behind a number, and those that come."""
        selection = _selection(request)
        after = self._events.last_number
        if request.HasField("after_number"):
            # A caller that is ahead saw events that a restore lost: it gets the new ones.
            after = min(after, _number(request.after_number))
        with self._counted():
            async with aclosing(self._events.watch(selection, after)) as watching:
                async for event in watching:
                    yield event_message(event)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        if self._watches >= EVENT_WATCHES_MAX:
            raise Overloaded(what="Following the events", limit=f"{EVENT_WATCHES_MAX} calls")
        self._watches += 1
        try:
            yield
        finally:
            self._watches -= 1


def _selection(
    request: events_pb2.ListEventsRequest | events_pb2.WatchEventsRequest,
) -> EventSelection:
    least = word_of(events_pb2.EventSeverity.DESCRIPTOR, "severity_min", request.severity_min)
    return EventSelection(
        since_ms=request.since_ms if request.HasField("since_ms") else None,
        severity_min=Severity[least.upper()] if least else Severity.INFO,
        subject_prefix=request.subject_prefix,
        codes=frozenset(request.codes),
        principal=request.principal,
    )


def _token(token: str) -> int | None:
    if not token:
        return None
    if not (token.isascii() and token.isdecimal() and len(token) < 20):
        raise IllegalArgument(argument="page_token", rule="it is that of an answer")
    return _number(int(token))


def _number(number: int) -> int:
    if number > HIGHEST_NUMBER:
        raise IllegalArgument(
            argument=f"the number {number}", rule=f"it is at most {HIGHEST_NUMBER}"
        )
    return number


def event_message(event: KeptEvent) -> events_pb2.Event:
    """An event on the wire."""
    message: events_pb2.Event = encoded(event, events_pb2.Event)
    return message
