"""The servicer of `Operations`: decodes, asks the operations, encodes."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from itertools import islice
from math import inf
from typing import Any

import grpc.aio

from dss_api.v1 import operations_pb2, operations_pb2_grpc
from dss_core.errors import Overloaded
from dssd.operations.operations import Caller, Operations
from dssd.rpc.operation_messages import (
    asked_change,
    asked_moves,
    listed_message,
    operation_message,
    plan_message,
    stream_messages,
)
from dssd.rpc.origin import origin_of
from dssd.rpc.principal import principal_of
from dssd.rpc.unix_peers import UnixPeers
from dssd.store.rows import OperationRow
from dssd.topics.catalogue import Catalogue

OPERATIONS_LISTED_MAX = 500
"""In one answer; a caller asks for older ones behind it."""

UNDO_LOOK_S = 2.0
"""Time in one answer for checking which operations can be undone: each needs a plan, 5 ms if its
group reads 100 streams. Operations beyond it are marked as not checked."""

OPERATION_WATCHES_MAX = 200
"""Calls that wait for an operation; a tool needs one."""


NOT_LOOKED_AT = "it was not looked at in this list; ask for the operation alone"

Context = grpc.aio.ServicerContext[Any, Any]


class OperationsServicer(operations_pb2_grpc.OperationsServicer):
    """Serves what operators change."""

    def __init__(self, operations: Operations, catalogue: Catalogue, peers: UnixPeers) -> None:
        self._operations = operations
        self._peers = peers
        self._catalogue = catalogue
        self._watches = 0

    async def Plan(
        self, request: operations_pb2.PlanRequest, context: Context
    ) -> operations_pb2.OperationPlan:
        """What a change would do now."""
        plan = await self._operations.plan(asked_change(request.change))
        return plan_message(plan, self._operations.now_ms())

    async def Apply(
        self, request: operations_pb2.ApplyRequest, context: Context
    ) -> operations_pb2.Operation:
        """Apply a change; answers once it counts."""
        origin = await origin_of(context, self._peers)
        row = await self._operations.apply(
            asked_change(request.change),
            caller=Caller(principal_of(context).name, str(origin)),
            if_revision=request.if_revision if request.HasField("if_revision") else None,
            reason=request.reason,
            operation_id=request.operation_id,
        )
        return await self._message(row)

    async def Get(
        self, request: operations_pb2.GetOperationRequest, context: Context
    ) -> operations_pb2.Operation:
        """One operation, with its streams."""
        return await self._looked_at(request.number)

    async def List(
        self, request: operations_pb2.ListOperationsRequest, context: Context
    ) -> operations_pb2.ListOperationsReply:
        """The newest operations first, without their streams."""
        limit = min(request.limit or OPERATIONS_LISTED_MAX, OPERATIONS_LISTED_MAX)
        rows = self._operations.newest(request.operation_id)
        wanted = (row for row in rows if _is_wanted(row, request))
        page = list(islice(wanted, limit))  # a row may be removed while others are read
        late_at = asyncio.get_running_loop().time() + UNDO_LOOK_S
        listed = [await self._listed(row, late_at) for row in page]
        return operations_pb2.ListOperationsReply(operations=listed)

    async def Watch(
        self, request: operations_pb2.WatchOperationRequest, context: Context
    ) -> AsyncGenerator[operations_pb2.Operation, None]:
        """The operation after each progress, until it ends."""
        with self._counted():
            async with aclosing(self._operations.watch(request.number)) as watching:
                async for row in watching:
                    yield await self._looked_at(row.number)

    async def Cancel(
        self, request: operations_pb2.CancelOperationRequest, context: Context
    ) -> operations_pb2.Operation:
        """Stop the rest of an operation."""
        return await self._message(
            await self._operations.cancel(
                request.number, caller=_caller(context), reason=request.reason
            )
        )

    async def _message(self, row: OperationRow) -> operations_pb2.Operation:
        message = operation_message(row)
        made = await self._operations.made_moves(row.number)
        pending = await self._operations.pending_moves(row)
        holders = self._operations.holders(row) if pending else {}
        message.streams.extend(stream_messages(made, pending, holders, self._catalogue))
        message.streams_done = len(made)
        # The streams that a cancelled operation left as they were.
        message.streams_waiting = max(len(pending), asked_moves(row) - len(made))
        return await self._counted_records(row, message)

    async def _counted_records(
        self, row: OperationRow, message: operations_pb2.Operation
    ) -> operations_pb2.Operation:
        records = await self._operations.records_made(row)
        if records is not None:
            message.records_done, message.records_asked = records.done, records.of
        return message

    async def _looked_at(self, number: int) -> operations_pb2.Operation:
        row = await self._operations.whole(number)
        return await self._taken_back(row, await self._message(row))

    async def _listed(self, row: OperationRow, late_at: float) -> operations_pb2.Operation:
        message = await self._counted_records(row, listed_message(row))
        return await self._taken_back(row, message, late_at)

    async def _taken_back(
        self, row: OperationRow, message: operations_pb2.Operation, late_at: float = inf
    ) -> operations_pb2.Operation:
        """The message, which says whether the operation can be taken back as things are now."""
        if message.undoable and row.ended_at_ms is not None:
            is_late = asyncio.get_running_loop().time() > late_at
            refusal = NOT_LOOKED_AT if is_late else await self._operations.undo_refusal(row.number)
            message.not_undoable_because = refusal
            message.undoable = not message.not_undoable_because
        return message

    @contextmanager
    def _counted(self) -> Iterator[None]:
        if self._watches >= OPERATION_WATCHES_MAX:
            limit = f"{OPERATION_WATCHES_MAX} calls"
            raise Overloaded(what="Waiting for operations", limit=limit)
        self._watches += 1
        try:
            yield
        finally:
            self._watches -= 1


def _caller(context: Context) -> Caller:
    return Caller(principal_of(context).name, context.peer())


def _is_wanted(row: OperationRow, request: operations_pb2.ListOperationsRequest) -> bool:
    subjects = (row.subject, row.subject.partition("@")[0])
    return (
        (not request.subject or request.subject in subjects)
        and (not request.state or request.state == row.state)
        and (not request.before_number or row.number < request.before_number)
    )
