"""Operations: what operators change, planned by the daemon, applied as planned, taken back.

Invariant: values in, frozen values out; no wire message leaves this module. A call to apply that
may have arrived is repeated under the same operation id alone, so a change is made once.
"""

import asyncio
import uuid
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from datetime import timedelta
from typing import TYPE_CHECKING

from dss_api.values import decoded
from dss_client._features import check_knows, needed_for
from dss_client._outage_log import Outage
from dss_client.changes import Change, MoveCursors, Target, Undo
from dss_client.limits import CALL_TIMEOUT_S
from dss_client.operation_values import (
    Operation,
    OperationPlan,
    plan_from_wire,
)
from dss_core.errors import PASSING, OutcomeUnknown, Overloaded

if TYPE_CHECKING:
    from dss_api.v1 import operations_pb2
    from dss_client._connection import Connection

_HIGHEST_LIMIT = (1 << 32) - 1
"""What the wire can say; the daemon's own bound is far below it."""


class Operations:
    """Plans, applies and follows operations; reached as ``client.operations``."""

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection

    async def plan(self, change: Change) -> OperationPlan:
        """What applying the change would do now; nothing is changed.

        Raises:
            DssError: why it cannot be applied, or the daemon does not answer.
        """
        from dss_api.v1 import operations_pb2
        from dss_client._changes_on_wire import change_to_wire

        await check_knows(self._connection, needed_for(change))
        request = operations_pb2.PlanRequest(change=change_to_wire(change))
        reply = await self._connection.ask(self._connection.operations.Plan, request)
        return plan_from_wire(reply)

    async def apply(
        self,
        change: Change | OperationPlan,
        *,
        if_revision: int | None = None,
        reason: str = "",
        operation_id: str | None = None,
    ) -> Operation:
        """Make a change, or exactly what was planned; it is durable when this returns.

        The operation may go on: `ended` waits for it. After a lost connection the call is
        repeated once, when a daemon is there again.

        Args:
            change: a change, or the plan of one.
            if_revision: of the subject; that of the plan where a plan is given. A change that finds
                nothing to do leaves it as it is, and is refused for an older one like any other.
            reason: kept with the operation, for whoever asks why.
            operation_id: the caller's own, at most one change a value; made up where absent.

        Raises:
            RevisionMoved: something else changed the subject meanwhile; nothing was done.
            OperationInProgress, OperationIdReused, NotUndoable, OffsetsDoNotFit: and the other
                conditions of the single changes; nothing was done.
            OutcomeUnknown: the connection was lost, and so it was when the call was repeated.
        """
        from dss_api.v1 import operations_pb2
        from dss_client._changes_on_wire import change_to_wire

        if isinstance(change, OperationPlan):
            if_revision = change.revision if if_revision is None else if_revision
            change = change.change
        else:
            await check_knows(self._connection, needed_for(change))
        request = operations_pb2.ApplyRequest(
            change=change_to_wire(change),
            if_revision=if_revision,
            reason=reason,
            operation_id=operation_id or str(uuid.uuid4()),
        )
        return decoded(await self._applied(request), Operation)

    async def _applied(self, request: "operations_pb2.ApplyRequest") -> "operations_pb2.Operation":
        """Call, and call again where nobody knows whether the first call arrived."""

        try:
            return await self._connection.change(self._connection.operations.Apply, request)
        except OutcomeUnknown as lost:
            call = self._connection.operations.Apply(
                request, timeout=CALL_TIMEOUT_S, wait_for_ready=True
            )
            try:
                return await self._connection.answer(call)
            except PASSING:
                # It says nothing of what became of the first call.
                raise lost from None

    async def rewind(
        self,
        group: str,
        *,
        to: Target | None = None,
        by: int | timedelta | None = None,
        streams: Sequence[str] = (),
        reason: str = "",
    ) -> Operation:
        """Deliver records again, from a target, or from so many records or so much time back.

        Raises:
            DssError: as for `apply`.
        """
        back = None if by is None else -by
        change = MoveCursors(group, "rewind", to, back, tuple(streams))
        return await self.apply(change, reason=reason)

    async def skip(
        self,
        group: str,
        *,
        to: Target | None = None,
        by: int | timedelta | None = None,
        streams: Sequence[str] = (),
        reason: str = "",
    ) -> Operation:
        """Pass over records, up to a target, or so many records or so much time.

        Raises:
            DssError: as for `apply`.
        """
        change = MoveCursors(group, "skip", to, by, tuple(streams))
        return await self.apply(change, reason=reason)

    async def undo(self, number: int, *, reason: str = "") -> Operation:
        """Take an operation back; that is an operation of its own.

        Raises:
            NotUndoable, OperationNotFound: it cannot be, or is not there.
            DssError: as for `apply`.
        """
        return await self.apply(Undo(number), reason=reason)

    async def get(self, number: int) -> Operation:
        """One operation, with its streams.

        Raises:
            OperationNotFound: there is none of this number.
        """
        from dss_api.v1 import operations_pb2

        request = operations_pb2.GetOperationRequest(number=number)
        reply = await self._connection.ask(self._connection.operations.Get, request)
        return decoded(reply, Operation)

    async def list(
        self, *, subject: str = "", state: str = "", latest: int | None = None
    ) -> tuple[Operation, ...]:
        """The operations that are kept, the newest first.

        Args:
            subject: of this group, NAME or NAME@FILTER, this topic or this client only.
            state: in this state only.
            latest: at most so many.
        """
        found: list[Operation] = []
        async with aclosing(self._pages(subject, state, latest)) as pages:
            async for page in pages:
                found += page
                if latest is not None and len(found) >= latest:
                    break
        return tuple(found[:latest])

    async def named(self, operation_id: str) -> Operation | None:
        """The operation that was applied under this id; None where none is kept."""
        from dss_api.v1 import operations_pb2

        request = operations_pb2.ListOperationsRequest(operation_id=operation_id)
        reply = await self._connection.ask(self._connection.operations.List, request)
        for found in reply.operations:
            return await self.get(found.number)
        return None

    async def _pages(
        self, subject: str = "", state: str = "", limit: int | None = None
    ) -> AsyncGenerator[Sequence[Operation], None]:
        """Page by page; the daemon decides how long a page is, and none is longer than asked."""
        from dss_api.v1 import operations_pb2

        limit = min(limit or 0, _HIGHEST_LIMIT)
        request = operations_pb2.ListOperationsRequest(subject=subject, state=state, limit=limit)
        while True:
            reply = await self._connection.ask(self._connection.operations.List, request)
            if not reply.operations:
                return
            yield [decoded(each, Operation) for each in reply.operations]
            request.before_number = reply.operations[-1].number

    async def watch(self, number: int) -> AsyncGenerator[Operation, None]:
        """An operation as it stands and as it goes on, until it has ended.

        Raises:
            OperationNotFound: there is none of this number.
            DssError: the daemon refuses, or was never there. A connection that is lost later is
                made again.
        """
        from dss_client._backoff import Backoff

        outage = Outage(f"the watching of operation {number}", self._connection.endpoint.text)
        backoff = Backoff()
        began = False
        while True:
            try:
                async with aclosing(self._watched(number)) as watched:
                    async for operation in watched:
                        began = True
                        backoff.reset()
                        outage.ended()
                        yield operation
                        if operation.ended:
                            return
            except PASSING as error:
                began = began or self._connection.outages.are_waited_out(error)
                if not began or isinstance(error, Overloaded):
                    raise
                outage.began(error)
            await asyncio.sleep(backoff.pause_s())

    async def ended(self, number: int) -> Operation:
        """Wait until an operation has ended, however it did.

        Raises:
            DssError: as for `watch`.
        """
        async with aclosing(self.watch(number)) as watched:
            async for operation in watched:
                if operation.ended:
                    return operation
        raise AssertionError("a watch ends with the operation")

    async def cancel(self, number: int, *, reason: str = "") -> Operation:
        """Cancel the rest of an operation; what it has done stays done.

        Raises:
            OperationNotFound, OperationEnded: it is not there, or there is nothing left of it.
        """
        from dss_api.v1 import operations_pb2

        request = operations_pb2.CancelOperationRequest(number=number, reason=reason)
        reply = await self._connection.change(self._connection.operations.Cancel, request)
        return decoded(reply, Operation)

    async def _watched(self, number: int) -> AsyncGenerator[Operation, None]:
        """The states of one call.

        Raises:
            DssError: the daemon refuses, or the connection was lost.
        """
        from dss_api.v1 import operations_pb2
        from dss_client._connection import ConnectionLostError

        request = operations_pb2.WatchOperationRequest(number=number)
        call = self._connection.operations.Watch(request)
        try:
            while (operation := await self._connection.read_or_end(call)) is not None:
                yield decoded(operation, Operation)
        except ConnectionLostError as lost:
            raise lost.reason from lost
        finally:
            call.cancel()


def document_of(change: Change) -> dict[str, object]:
    """A change as a JSON document, to be kept and read back by `change_of`.

    Raises:
        IllegalArgument, IllegalTime: a value breaks its rule.
    """
    from dss_client import _changes_on_wire

    return _changes_on_wire.document_of(change)


def change_of(document: Mapping[str, object]) -> Change:
    """The change of a document.

    Raises:
        IllegalArgument: it is not one.
    """
    from dss_client import _changes_on_wire

    return _changes_on_wire.change_of(document)
