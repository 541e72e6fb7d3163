"""The audit: every operator's call that changes something or is refused becomes an event.

It stands in the guard, so no servicer can forget it. Refusals of one principal are bounded: after
so many, one event in a while counts the others. Invariant: a refusal has its own event, durable
before the answer, or counts in the next such event of its principal. No change is missing: each
commit of a call also writes a draft of the call's event, so neither is durable alone.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from dss_core.errors import DiskFailed, DssError
from dssd.clock import Clock
from dssd.descriptors import shortage_in
from dssd.events.kinds import CALL_DONE, CALL_REFUSED
from dssd.events.model import Event, EventKind
from dssd.events.teller import Teller, tell_if_room
from dssd.exception_groups import condition_in
from dssd.rpc import audited_calls
from dssd.rpc.audited_calls import CallAsked
from dssd.rpc.origin import Context, Origin, origin_of
from dssd.rpc.principal import principal_of
from dssd.rpc.unix_peers import UnixPeers
from dssd.store.along import Along, along
from dssd.store.rows import EventRow

REFUSALS_KEPT_AT_ONCE = 20
"""Refused calls of one principal that get events of their own, after a quiet time."""

REFUSAL_KEPT_EVERY_MS = 360_000
"""After those: one event in so long, which counts the others. 240 a day, so that a caller that is
refused without end needs six weeks to fill what is kept, and old events go after a month."""

REFUSED_PRINCIPALS_MAX = 256
"""Principals whose refusals are counted, the most recent ones: some hundred bytes each."""


Call = Callable[[Any, Context], Awaitable[object]]

UNKNOWN = "unknown"
"""The outcome of a call whose caller went away before it was answered."""


@dataclass(slots=True)
class _Refused:
    """The recent refusals of a principal."""

    full_at_ms: float
    """When the full number may be kept again."""
    more: int = 0
    """Refusals since the last that was kept."""
    last: Event | None = None


class _Called(NamedTuple):
    """A call of an operator."""

    method: str
    asked: CallAsked
    context: Context

    def done(self, origin: Origin, outcome: str = "done") -> Event:
        """That it was not refused."""
        return self.event(CALL_DONE, origin, outcome, outcome)

    def event(self, kind: EventKind, origin: Origin, outcome: str, said: str) -> Event:
        """What is told of it."""
        principal = principal_of(self.context).name
        name = self.method.rpartition(".")[2]
        action, subject = self.asked
        return Event(
            kind,
            subject or name,
            f"{principal}, from {origin}, asked to {action} {subject}: {said}.",
            {"method": name, "principal": principal, "outcome": outcome, **origin.fields()},
        )


class Audit:
    """Tells the calls of operators."""

    def __init__(self, teller: Teller, peers: UnixPeers, clock: Clock) -> None:
        self._teller = teller
        self._peers = peers
        self._clock = clock
        self._refused: OrderedDict[str, _Refused] = OrderedDict()

    def watched(self, method: str, decode: Callable[[bytes], Any], call: Call) -> Call:
        """The call with its audit, where its method is one of operators."""
        if method not in audited_calls.DESCRIBED:
            return call
        tells_done = method not in audited_calls.ONLY_REFUSALS

        async def audited(request: Any, context: Context) -> object:  # noqa: ANN401 - of any method
            asked = _asked(method, decode, request)
            if tells_done:
                return await self._changing(_Called(method, asked, context), call, request)
            try:
                return await call(request, context)
            except Exception as error:
                await self._tell_refused(_Called(method, asked, context), error)
                raise

        return audited

    async def _changing(self, called: _Called, call: Call, request: object) -> object:
        audited_calls.begin_call()
        done = called.done(await self._origin(called.context))
        draft = self._teller.draft(done)
        with along(draft) as going:
            try:
                answer = await call(request, called.context)
            except asyncio.CancelledError:
                unknown = called.done(Origin(called.context.peer()), UNKNOWN)
                self._teller.note(unknown, draft)
                raise
            except Exception as error:
                going.end()
                await self._tell_refused(called, error, draft if going.is_durable else None)
                raise
        await self._tell_done(done, draft, going)
        return answer

    def flush(self) -> None:
        """Tell the refusals that are only counted so far."""
        for principal in self._refused:
            self._tell_more(principal)

    async def _origin(self, context: Context) -> Origin:
        """Where a call comes from; without its process where it may be one of a flood of them."""
        refused = self._refused.get(principal_of(context).name)
        if refused is not None and self._is_full(refused):
            return Origin(context.peer())
        return await origin_of(context, self._peers)

    async def _tell_done(self, done: Event, draft: EventRow | None, going: Along) -> None:
        if going.is_durable:
            self._teller.note(done, draft)
        elif audited_calls.changed():
            await tell_if_room(self._teller, done)

    async def _tell_refused(
        self, called: _Called, raised: Exception, draft: EventRow | None = None
    ) -> None:
        error = condition_in(raised) or shortage_in(raised)
        if error is None or isinstance(error, DiskFailed):
            if draft is not None:  # the call took effect at least in part, and the daemon may go on
                self._teller.note(called.done(Origin(called.context.peer()), UNKNOWN), draft)
            return
        principal = principal_of(called.context).name
        kept = self._may_keep(principal) or draft is not None
        context = called.context
        origin = await origin_of(context, self._peers) if kept else Origin(context.peer())
        said = f"refused, {error.code}: {error.message.rstrip('.')}"
        event = called.event(CALL_REFUSED, origin, error.code, said)
        if draft is not None:
            self._teller.note(event, draft)
            return
        if kept:
            await tell_if_room(self._teller, event)
            return
        counted = self._refused[principal]
        counted.more += 1
        counted.last = event
        if counted.more == 1:
            loop = asyncio.get_running_loop()
            loop.call_later(REFUSAL_KEPT_EVERY_MS / 1_000, self._tell_more, principal)

    def _may_keep(self, principal: str) -> bool:
        """Whether one more refusal gets an event of its own; takes its place if so."""
        now_ms = self._clock.now_ms()
        refused = self._refused.get(principal)
        if refused is None:
            refused = self._refused[principal] = _Refused(now_ms)
            if len(self._refused) > REFUSED_PRINCIPALS_MAX:
                self._tell_more(next(iter(self._refused)))
                self._refused.popitem(last=False)
        self._refused.move_to_end(principal)
        if self._is_full(refused):
            return False
        refused.full_at_ms = max(refused.full_at_ms, now_ms) + REFUSAL_KEPT_EVERY_MS
        return True

    def _is_full(self, refused: _Refused) -> bool:
        """Whether a refusal more of this principal is only counted."""
        now_ms = self._clock.now_ms()
        full_at_ms = max(refused.full_at_ms, now_ms) + REFUSAL_KEPT_EVERY_MS
        return full_at_ms > now_ms + REFUSALS_KEPT_AT_ONCE * REFUSAL_KEPT_EVERY_MS

    def _tell_more(self, principal: str) -> None:
        refused = self._refused.get(principal)
        if refused is None or refused.last is None:
            return
        last, more = refused.last, refused.more
        refused.more, refused.last = 0, None
        refused.full_at_ms = max(refused.full_at_ms, self._clock.now_ms()) + REFUSAL_KEPT_EVERY_MS
        sentence = f"{more} more calls of {principal} were refused. The last: {last.sentence}"
        self._teller.note(
            Event(CALL_REFUSED, last.subject, sentence, {**last.fields, "calls": str(more)})
        )


def _asked(method: str, decode: Callable[[bytes], Any], request: bytes) -> CallAsked:
    describe = audited_calls.DESCRIBED[method]
    try:
        return describe(decode(request))
    except DssError:  # it is unreadable, and refused for that
        return CallAsked("call", method)
