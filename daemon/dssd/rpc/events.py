"""The servicer of `Events`: decodes, asks the events, encodes."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from typing import Any

import grpc.aio

from dss_api.v1 import events_pb2, events_pb2_grpc
from dss_core.errors import IllegalArgument, Overloaded
from dssd.events.events import Events
from dssd.events.limits import EVENT_WATCHES_MAX, EVENTS_LISTED_MAX
from dssd.events.model import KeptEvent, Severity
from dssd.events.selection import Page, Selection

Context = grpc.aio.ServicerContext[Any, Any]

_SEVERITIES = {
    events_pb2.EVENT_SEVERITY_UNSPECIFIED: Severity.INFO,
    events_pb2.EVENT_SEVERITY_INFO: Severity.INFO,
    events_pb2.EVENT_SEVERITY_WARNING: Severity.WARNING,
    events_pb2.EVENT_SEVERITY_ERROR: Severity.ERROR,
}
_SEVERITY_NUMBERS = {
    Severity.INFO: events_pb2.EVENT_SEVERITY_INFO,
    Severity.WARNING: events_pb2.EVENT_SEVERITY_WARNING,
    Severity.ERROR: events_pb2.EVENT_SEVERITY_ERROR,
}

NUMBER_MAX = (1 << 63) - 1
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
        selection = _selection(request)
        limit = min(request.limit or EVENTS_LISTED_MAX, EVENTS_LISTED_MAX)
        after = max(_number(request.after_number), _after(request.page_token))
        last_number = self._events.last_number
        if request.latest:
            last = await self._events.last_of(selection, limit)
            page = Page(tuple(each for each in last if each.number > after), after, is_whole=True)
        else:
            page = await self._events.first_after(selection, after, limit)
        return events_pb2.ListEventsReply(
            events=[_event(each) for each in page.events],
            next_page_token="" if page.is_whole else str(page.last),
            last_number=max([last_number, *(each.number for each in page.events)]),
        )

    async def Watch(
        self, request: events_pb2.WatchEventsRequest, context: Context
    ) -> AsyncGenerator[events_pb2.Event, None]:
        """The wanted events behind a number, and those that come."""
        selection = _selection(request)
        after = self._events.last_number
        if request.HasField("after_number"):
            after = _number(request.after_number)
        with self._counted():
            async with aclosing(self._events.watch(selection, after)) as watching:
                async for event in watching:
                    yield _event(event)

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
) -> Selection:
    if request.severity_min not in _SEVERITIES:
        raise IllegalArgument(argument="severity_min", rule="it is info, warning or error")
    return Selection(
        since_ms=request.since_ms if request.HasField("since_ms") else None,
        severity_min=_SEVERITIES[request.severity_min],
        subject_prefix=request.subject_prefix,
    )


def _after(token: str) -> int:
    if not token:
        return 0
    if not (token.isascii() and token.isdecimal() and len(token) < 20):
        raise IllegalArgument(argument="page_token", rule="it is that of an answer")
    return _number(int(token))


def _number(number: int) -> int:
    if number > NUMBER_MAX:
        raise IllegalArgument(argument=f"the number {number}", rule=f"it is at most {NUMBER_MAX}")
    return number


def _event(event: KeptEvent) -> events_pb2.Event:
    return events_pb2.Event(
        number=event.number,
        at_ms=event.at_ms,
        code=event.code,
        severity=_SEVERITY_NUMBERS[event.severity],
        subject=event.subject,
        sentence=event.sentence,
        fields=event.fields,
        times=event.times,
        last_at_ms=event.last_at_ms,
    )
