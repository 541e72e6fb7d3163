"""The audit: every call of an operator that changes something, or was refused, becomes an event.

It stands in the guard, so no servicer can forget it. Refusals of one principal are bounded: after
so many, one event in a while counts the others. Invariant: a refusal has an event of its own, or is
counted in the next of its principal; a change that was made is never left out.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from dss_core.errors import DiskFailed, DssError
from dssd.clock import Clock
from dssd.descriptors import shortage_in
from dssd.events.kinds import CALL_DONE, CALL_REFUSED
from dssd.events.model import Event, EventKind, Note
from dssd.exception_groups import condition_in
from dssd.rpc import audited_calls
from dssd.rpc.audited_calls import Asked
from dssd.rpc.limits import (
    REFUSAL_KEPT_EVERY_MS,
    REFUSALS_KEPT_AT_ONCE,
    REFUSED_PRINCIPALS_MAX,
)
from dssd.rpc.origin import Context, Origin, origin_of
from dssd.rpc.principal import principal_of
from dssd.rpc.unix_peers import UnixPeers

Call = Callable[[Any, Context], Awaitable[object]]

UNKNOWN = "unknown"
"""The outcome of a call whose caller went away before it was answered."""


@dataclass(slots=True)
class _Refused:
    """What is known of the refusals of a principal."""

    full_at_ms: float
    """When as many as at first may be kept again."""
    more: int = 0
    """Refusals since the last that was kept."""
    last: Event | None = None


class Audit:
    """Tells the calls of operators to ``note``."""

    def __init__(self, note: Note, peers: UnixPeers, clock: Clock) -> None:
        self._note = note
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
            audited_calls.begin_call()
            try:
                answer = await call(request, context)
            except asyncio.CancelledError:
                if tells_done:
                    self._tell_done(method, asked, UNKNOWN, context, Origin(context.peer()))
                raise
            except Exception as error:
                condition = condition_in(error) or shortage_in(error)
                if condition is not None and not isinstance(condition, DiskFailed):
                    await self._tell_refused(method, asked, condition, context)
                raise
            if audited_calls.changed() and tells_done:
                origin = await origin_of(context, self._peers)
                self._tell_done(method, asked, "done", context, origin)
            return answer

        return audited

    def flush(self) -> None:
        """Tell the refusals that are only counted so far."""
        for principal in self._refused:
            self._tell_more(principal)

    def _tell_done(
        self, method: str, asked: Asked, outcome: str, context: Context, origin: Origin
    ) -> None:
        self._note(_event(CALL_DONE, method, asked, outcome, context, origin, outcome))

    async def _tell_refused(
        self, method: str, asked: Asked, error: DssError, context: Context
    ) -> None:
        principal = principal_of(context).name
        kept = self._may_keep(principal)
        origin = await origin_of(context, self._peers) if kept else Origin(context.peer())
        said = f"refused, {error.code}: {error.message.rstrip('.')}"
        event = _event(CALL_REFUSED, method, asked, error.code, context, origin, said)
        if kept:
            self._note(event)
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
        full_at_ms = max(refused.full_at_ms, now_ms) + REFUSAL_KEPT_EVERY_MS
        if full_at_ms > now_ms + REFUSALS_KEPT_AT_ONCE * REFUSAL_KEPT_EVERY_MS:
            return False
        refused.full_at_ms = full_at_ms
        return True

    def _tell_more(self, principal: str) -> None:
        refused = self._refused.get(principal)
        if refused is None or refused.last is None:
            return
        last, more = refused.last, refused.more
        refused.more, refused.last = 0, None
        refused.full_at_ms = max(refused.full_at_ms, self._clock.now_ms()) + REFUSAL_KEPT_EVERY_MS
        sentence = f"{more} more calls of {principal} were refused. The last: {last.sentence}"
        self._note(Event(CALL_REFUSED, last.subject, sentence, {**last.fields, "calls": str(more)}))


def _asked(method: str, decode: Callable[[bytes], Any], request: bytes) -> Asked:
    describe = audited_calls.DESCRIBED[method]
    try:
        return describe(decode(request))
    except DssError:  # it cannot be read, and is refused for that
        return Asked("call", method)


def _event(
    kind: EventKind,
    method: str,
    asked: Asked,
    outcome: str,
    context: Context,
    origin: Origin,
    said: str,
) -> Event:
    principal = principal_of(context).name
    name = method.rpartition(".")[2]
    return Event(
        kind,
        asked.subject or name,
        f"{principal}, from {origin}, asked to {asked.action} {asked.subject}: {said}.",
        {"method": name, "principal": principal, "outcome": outcome, **origin.fields()},
    )
