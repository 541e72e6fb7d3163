"""Operations on a real daemon, through the client."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import grpc
import grpc.aio
import pytest

import dss_client
from dss_api.v1 import operations_pb2
from dss_client import changes
from dss_core.errors import (
    NotUndoable,
    OperationEnded,
    OperationNotFound,
    OutcomeUnknown,
    QueuesNotEmpty,
    RevisionMoved,
    StreamNotRead,
    Unreachable,
)
from dss_sim.played_groups import LOOK_AGAIN_S
from support.daemon_process import running
from support.proof_share import only_in_proof

RECORDS = 40
ACKED = 30
GROUP = "team@orders/#"


def serve(home: Path) -> tuple[str, ...]:
    return ("--data-dir", str(home / "data"), "--listen", endpoint(home))


def endpoint(home: Path) -> str:
    return f"unix:{home / 'd.sock'}"


async def acknowledge(client: dss_client.Client) -> None:
    """Make the group: it has acknowledged the first records of its only stream."""
    await client.topics.create("orders", partitions=1)
    async with client.producer("orders") as producer:
        for at in range(RECORDS):
            producer.send_nowait(b"%d" % at)
    async with client.subscribe("$share/team/orders/#", start="earliest") as subscription:
        async for record in subscription:
            await record.ack()
            if record.offset == ACKED - 1:
                break


async def test_a_live_group_gets_queues_and_gives_them_up_once_its_dead_letter_is_gone(
    home: Path,
) -> None:
    async with running(*serve(home)), dss_client.connect("c", endpoint=endpoint(home)) as client:
        await client.topics.create("orders", partitions=1)
        await publish(client, b"bad")
        async with client.subscribe("$share/team/orders/#", start="earliest") as subscription:
            (record,) = await subscription.fetch(1)
            await record.nak(delay=600)
            got = await client.operations.apply(changes.EditGroup("team", max_deliver=1))
            assert (await client.operations.ended(got.number)).state == "done"
            (record,) = await subscription.fetch(1)
            await record.nak(error="no")
            await until_dead(client, 1)
            with pytest.raises(QueuesNotEmpty):
                await client.operations.plan(changes.EditGroup("team", max_deliver=0))
            discard = await client.operations.apply(
                changes.DiscardDeadLetters("team", everything=True)
            )
            await client.operations.ended(discard.number)
            lost = await client.operations.apply(changes.EditGroup("team", max_deliver=0))
            assert (await client.operations.ended(lost.number)).state == "done"
            await publish(client, b"good")
            (record,) = await subscription.fetch(1)
            assert (record.payload, record.level) == (b"good", 0)
            await record.ack()


async def until_dead(client: dss_client.Client, count: int) -> None:
    async with asyncio.timeout(10):
        while (await client.groups.list())[0].dead != count:  # noqa: ASYNC110 - it is told to nobody
            await asyncio.sleep(LOOK_AGAIN_S)


async def publish(client: dss_client.Client, payload: bytes) -> None:
    async with client.producer("orders") as producer:
        producer.send_nowait(payload)


async def floor(client: dss_client.Client) -> int:
    (stream,) = (await client.groups.offsets("team")).streams
    return stream.progress.floor


async def test_a_plan_is_applied_as_it_was_made_and_taken_back(home: Path) -> None:
    async with running(*serve(home)), dss_client.connect("c", endpoint=endpoint(home)) as client:
        await acknowledge(client)
        plan = await client.operations.plan(changes.MoveCursors("team", "rewind", by=-10))
        (stream,) = plan.streams
        assert (plan.kind, plan.subject, plan.revision) == ("offsets.rewind", GROUP, 0)
        assert (stream.floor, stream.target, stream.again) == (ACKED, ACKED - 10, 10)
        assert await floor(client) == ACKED, "a plan changes nothing"
        operation = await client.operations.apply(plan, reason="why not")
        done = await client.operations.ended(operation.number)
        assert (done.state, done.reason, done.revision) == ("done", "why not", 1)
        assert await floor(client) == ACKED - 10
        (group,) = await client.groups.list()
        assert (group.revision, group.paused, group.paused_until_ms) == (1, False, None)
        assert group.fates.moved == -10
        with pytest.raises(RevisionMoved):
            await client.operations.apply(plan)
        undone = await client.operations.undo(operation.number, reason="ah")
        assert (await client.operations.ended(undone.number)).undoes == operation.number
        assert await floor(client) == ACKED
        with pytest.raises(NotUndoable):
            await client.operations.undo(operation.number)
        with pytest.raises(OperationEnded):
            await client.operations.cancel(operation.number)


async def test_operations_are_listed_and_found_by_number_and_by_id(home: Path) -> None:
    async with running(*serve(home)), dss_client.connect("c", endpoint=endpoint(home)) as client:
        await acknowledge(client)
        for at in range(3):
            operation = await client.operations.apply(
                changes.MoveCursors("team", "seek", to=at), operation_id=f"my {at}"
            )
            await client.operations.ended(operation.number)
        listed = await client.operations.list(subject=GROUP)
        assert [each.operation_id for each in listed] == ["my 2", "my 1", "my 0"]
        assert await client.operations.list(latest=2) == listed[:2]
        assert await client.operations.list(latest=0) == ()
        assert await client.operations.list() == listed
        assert await client.operations.list(state="running") == ()
        assert await client.operations.list(subject="other") == ()
        got = await client.operations.get(listed[2].number)
        assert [(each.stream, each.done) for each in got.streams] == [("orders/0/0", True)]
        before, after = got.streams[0].before, got.streams[0].after
        assert before is not None
        assert after is not None
        assert (before.floor, after.floor) == (ACKED, 0)
        assert await client.operations.named("my 0") == got
        assert await client.operations.named("nobody's") is None
        repeated = await client.operations.apply(
            changes.MoveCursors("team", "seek", to=2), operation_id="my 2"
        )
        assert repeated.number == listed[0].number
        with pytest.raises(OperationNotFound):
            await client.operations.get(999_999)
        with pytest.raises(OperationNotFound):
            await client.operations.ended(999_999)


async def test_the_short_ways_rewind_skip_and_carry_offsets_over(home: Path) -> None:
    async with running(*serve(home)), dss_client.connect("c", endpoint=endpoint(home)) as client:
        await acknowledge(client)
        rewound = await client.operations.rewind("team", by=5, streams=["orders/0/0"])
        await client.operations.ended(rewound.number)
        assert await floor(client) == ACKED - 5
        exported = await client.groups.offsets("team", streams=["orders/0/0"])
        assert exported.group == GROUP
        rewound = await client.operations.rewind("team", by=timedelta(hours=1))
        await client.operations.ended(rewound.number)
        assert await floor(client) == 0
        skipped = await client.operations.skip("team", to="latest")
        await client.operations.ended(skipped.number)
        assert await floor(client) == RECORDS
        imported = await client.operations.apply(changes.ImportOffsets("team", exported.streams))
        await client.operations.ended(imported.number)
        assert (await client.groups.offsets("team")).streams == exported.streams
        with pytest.raises(StreamNotRead):
            await client.groups.offsets("team", streams=["orders/0/7"])


@only_in_proof
@pytest.mark.slow("the streams of a killed daemon's members rest for a while")
async def test_a_watch_goes_on_over_a_restart_until_the_operation_has_ended(home: Path) -> None:
    async with (
        asyncio.timeout(60),
        dss_client.connect("holder", endpoint=endpoint(home)) as holder,
        dss_client.connect("watcher", endpoint=endpoint(home)) as client,
        running(*serve(home)) as daemon,
    ):
        await acknowledge(client)
        async with holder.subscribe("$share/team/orders/#") as subscription:
            # It keeps what it has, so the cursor cannot be moved at once.
            await anext(aiter(subscription))
            operation = await client.operations.rewind("team", to="earliest")
            watched = aiter(client.operations.watch(operation.number))
            first = await anext(watched)
            assert (first.state, first.streams_waiting) == ("running", 1)
            await daemon.kill()
            async with running(*serve(home)):
                states = [each.state async for each in watched]
                assert states[-1] == "done"
                assert await floor(client) == 0


Context = grpc.aio.ServicerContext[operations_pb2.ApplyRequest, operations_pb2.Operation]


class Forgetful:
    """Applies, and loses the connection before it answers, so many times."""

    def __init__(self, losses: int) -> None:
        self.losses = losses
        self.asked: list[operations_pb2.ApplyRequest] = []

    async def apply(
        self, request: operations_pb2.ApplyRequest, context: Context
    ) -> operations_pb2.Operation:
        """The method of the wire."""
        self.asked.append(request)
        if len(self.asked) <= self.losses:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "Socket closed")
        return operations_pb2.Operation(number=7, operation_id=request.operation_id)


@asynccontextmanager
async def served(servicer: Forgetful, home: Path) -> AsyncGenerator[None]:
    server = grpc.aio.server()
    handler = grpc.unary_unary_rpc_method_handler(
        servicer.apply,
        request_deserializer=operations_pb2.ApplyRequest.FromString,
        response_serializer=operations_pb2.Operation.SerializeToString,
    )
    service = grpc.method_handlers_generic_handler("dss_api.v1.Operations", {"Apply": handler})
    server.add_generic_rpc_handlers((service,))
    server.add_insecure_port(endpoint(home))
    await server.start()
    try:
        yield
    finally:
        await server.stop(None)


async def test_a_call_that_may_have_arrived_is_repeated_once_with_its_id(home: Path) -> None:
    servicer = Forgetful(losses=1)
    async with served(servicer, home), dss_client.connect(endpoint=endpoint(home)) as client:
        assert (await client.operations.undo(3)).number == 7
        first, second = servicer.asked
        assert first == second
        assert first.operation_id
        await client.operations.undo(3)
        assert servicer.asked[2].operation_id != first.operation_id


async def test_a_call_that_is_lost_twice_leaves_its_outcome_unknown(home: Path) -> None:
    servicer = Forgetful(losses=2)
    async with served(servicer, home), dss_client.connect(endpoint=endpoint(home)) as client:
        with pytest.raises(OutcomeUnknown):
            await client.operations.undo(3)
    assert len(servicer.asked) == 2


async def test_a_daemon_that_was_never_there_is_an_error(home: Path) -> None:
    async with dss_client.connect(endpoint=endpoint(home)) as client:
        with pytest.raises(Unreachable):
            await client.operations.ended(1)
        with pytest.raises(Unreachable):
            await client.operations.undo(1)
