"""The audit in front of a real server: which calls are told, of whom, and how many."""

import asyncio
import getpass
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from dss_api.v1 import operations_pb2, operations_pb2_grpc, topics_pb2, topics_pb2_grpc
from dss_core.errors import OperationNotFound, TopicInUse
from dss_sim.played_groups import LOOK_AGAIN_S
from dssd.access.permissions import Role
from dssd.addresses import Address, TcpAddress, UnixAddress
from dssd.clock import Clock
from dssd.events.limits import EVENT_FIELDS_MAX
from dssd.rpc import audited_calls
from dssd.rpc.audit import REFUSAL_KEPT_EVERY_MS, REFUSALS_KEPT_AT_ONCE, Audit
from dssd.rpc.audited_calls import DESCRIBED, note_unchanged
from dssd.rpc.principal import METHOD_ROLES
from dssd.rpc.server import RpcServer
from dssd.rpc.unix_peers import UnixPeers
from dssd.store.memory import MemoryStore
from dssd.store.port import Put
from dssd.store.rows import EventRow, TopicNameRow
from support.audits import uncounted
from support.daemon_process import short_directory
from support.heard_events import Heard

Context = grpc.aio.ServicerContext[Any, Any]
ME = f"local:{getpass.getuser()}"
PROGRAM = Path("/proc/self/comm").read_text().strip()


def my_agent() -> str:
    """What the client calls this process."""
    return f"dss-client pid/{os.getpid()}"


class SetClock(Clock):
    """Stands still until the test moves it."""

    __slots__ = ("at_ms",)

    def __init__(self) -> None:
        self.at_ms = 1_000_000

    def now_ms(self) -> int:
        return self.at_ms


class Topics(topics_pb2_grpc.TopicsServicer):
    """Does as it was told."""

    def __init__(self, act: Callable[[], Awaitable[None]]) -> None:
        self._act = act

    async def Create(
        self, request: topics_pb2.CreateTopicRequest, context: Context
    ) -> topics_pb2.Topic:
        await self._act()
        return topics_pb2.Topic()

    async def Remove(
        self, request: topics_pb2.RemoveTopicRequest, context: Context
    ) -> topics_pb2.RemoveTopicReply:
        await self._act()
        return topics_pb2.RemoveTopicReply(removed=True)

    async def List(
        self, request: topics_pb2.ListTopicsRequest, context: Context
    ) -> topics_pb2.ListTopicsReply:
        return topics_pb2.ListTopicsReply()

    async def Describe(
        self, request: topics_pb2.DescribeTopicRequest, context: Context
    ) -> topics_pb2.Topic:
        return topics_pb2.Topic()

    async def Locate(
        self, request: topics_pb2.LocateRequest, context: Context
    ) -> topics_pb2.LocateReply:
        return topics_pb2.LocateReply()


class Operations(operations_pb2_grpc.OperationsServicer):
    """Applies everything, and plans no undo."""

    async def Apply(
        self, request: operations_pb2.ApplyRequest, context: Context
    ) -> operations_pb2.Operation:
        return operations_pb2.Operation(number=request.change.undo.number)

    async def Plan(
        self, request: operations_pb2.PlanRequest, context: Context
    ) -> operations_pb2.OperationPlan:
        if request.change.undo.number:
            raise OperationNotFound(number=request.change.undo.number)
        return operations_pb2.OperationPlan()


class Served:
    """A server, a channel to it, and what its audit told."""

    def __init__(self, path: Path, clock: SetClock) -> None:
        self.address = UnixAddress(path)
        self.clock = clock
        self.heard = Heard()
        self.told = self.heard.events
        self.audit = Audit(self.heard, UnixPeers([self.address]), clock)
        self.topics: topics_pb2_grpc.TopicsStub
        self.operations: operations_pb2_grpc.OperationsStub


@asynccontextmanager
async def serving(
    act: Callable[[], Awaitable[None]], agent: str | None = None, *, tcp: bool = False
) -> AsyncIterator[Served]:
    with short_directory() as directory:
        served = Served(directory / "s", SetClock())
        server = RpcServer(
            [
                lambda own: topics_pb2_grpc.add_TopicsServicer_to_server(Topics(act), own),
                lambda own: operations_pb2_grpc.add_OperationsServicer_to_server(
                    Operations(),  # type: ignore[abstract] # one call is enough
                    own,
                ),
            ],
            lambda error: None,
            served.audit,
            uncounted(),
        )
        wanted: Address = TcpAddress("127.0.0.1", 0) if tcp else served.address
        [address] = server.bind([wanted])
        await server.start()
        said = my_agent() if agent is None else agent
        options = (("grpc.primary_user_agent", said),)
        async with grpc.aio.insecure_channel(address.target, options=options) as channel:
            served.topics = topics_pb2_grpc.TopicsStub(channel)
            served.operations = operations_pb2_grpc.OperationsStub(channel)
            yield served
        await server.stop(None)


async def nothing() -> None:
    """Go on."""


async def refuse() -> None:
    raise TopicInUse(topic="orders", groups="billing")


async def remove(served: Served, name: str = "orders") -> None:
    with pytest.raises(grpc.aio.AioRpcError):
        await served.topics.Remove(topics_pb2.RemoveTopicRequest(name=name))


def test_methods_of_operators_and_administrators_and_plans_are_described_and_no_others() -> None:
    theirs = (Role.OPERATE, Role.ADMIN)
    operators = {method for method, role in METHOD_ROLES.items() if role in theirs}
    assert set(DESCRIBED) == operators | {audited_calls.PLAN}


async def test_a_call_that_changes_something_is_told_with_the_process_that_made_it() -> None:
    async with serving(nothing) as served:
        await served.topics.Create(topics_pb2.CreateTopicRequest(name="orders"))
        await served.topics.Describe(topics_pb2.DescribeTopicRequest(name="orders"))
        await served.topics.List(topics_pb2.ListTopicsRequest())
    [event] = served.told
    assert (event.kind.code, event.subject) == ("call.done", "orders")
    assert event.fields == {
        "method": "Topics/Create",
        "principal": ME,
        "outcome": "done",
        "origin": "unix:",
        "uid": str(os.getuid()),
        "user": getpass.getuser(),
        "pid": str(os.getpid()),
        "program": PROGRAM,
    }
    assert len(event.fields) <= EVENT_FIELDS_MAX
    assert event.sentence == (
        f"{ME}, from unix: {PROGRAM}, pid {os.getpid()}, user {getpass.getuser()}, "
        "asked to create the topic orders: done."
    )


@pytest.mark.parametrize("agent", ["", "pid/1", "dss-client pid/99999999999", "pid/0 pid/x"])
async def test_a_process_that_is_not_connected_is_not_told(agent: str) -> None:
    async with serving(nothing, agent) as served:
        await served.topics.Create(topics_pb2.CreateTopicRequest(name="orders"))
    [event] = served.told
    assert "pid" not in event.fields


async def test_over_tcp_the_address_is_told_and_no_process() -> None:
    async with serving(nothing, tcp=True) as served:
        await served.topics.Create(topics_pb2.CreateTopicRequest(name="orders"))
    [event] = served.told
    assert event.fields["principal"] == "loopback"
    assert event.fields["origin"].startswith("ipv4:127.0.0.1:")
    assert "pid" not in event.fields


async def test_a_call_that_found_all_as_it_was_asked_to_be_is_not_told() -> None:
    async def unchanged() -> None:
        note_unchanged()

    async with serving(unchanged) as served:
        await served.topics.Create(topics_pb2.CreateTopicRequest(name="orders"))
        assert served.told == []


async def test_what_is_applied_is_told_by_its_own_event_and_what_is_refused_here() -> None:
    async with serving(nothing) as served:
        change = operations_pb2.Change(undo=operations_pb2.Undo(number=7))
        await served.operations.Apply(operations_pb2.ApplyRequest(change=change))
        assert served.told == []
        with pytest.raises(grpc.aio.AioRpcError):
            await served.operations.Cancel(operations_pb2.CancelOperationRequest(number=7))
    assert audited_calls.DESCRIBED[audited_calls.APPLY](
        operations_pb2.ApplyRequest(change=change)
    ) == ("apply the change 'undo' for", "7")


async def test_a_plan_is_told_where_it_is_refused_and_counted_with_other_refusals() -> None:
    async with serving(refuse) as served:
        await served.operations.Plan(operations_pb2.PlanRequest())
        assert served.told == []
        asked = operations_pb2.PlanRequest(
            change=operations_pb2.Change(undo=operations_pb2.Undo(number=7))
        )
        for _ in range(REFUSALS_KEPT_AT_ONCE + 5):
            with pytest.raises(grpc.aio.AioRpcError):
                await served.operations.Plan(asked)
    assert len(served.told) == REFUSALS_KEPT_AT_ONCE
    event = served.told[0]
    assert (event.kind.code, event.subject) == ("call.refused", "7")
    assert "asked to plan the change 'undo' for 7: refused, DSS2021" in event.sentence


async def test_a_refused_call_is_told_with_its_code() -> None:
    async with serving(refuse) as served:
        await remove(served)
    [event] = served.told
    assert (event.kind.code, event.subject) == ("call.refused", "orders")
    assert event.fields["outcome"] == TopicInUse.code
    assert event.sentence.endswith(
        "asked to remove the topic orders: refused, DSS2014: Topic orders is read by groups: "
        "billing."
    )


async def test_a_request_that_cannot_be_read_is_told_as_refused() -> None:
    async with serving(nothing) as served, grpc.aio.insecure_channel(served.address.target) as raw:
        unread: Any = raw.unary_unary("/dss_api.v1.Topics/Remove")
        with pytest.raises(grpc.aio.AioRpcError):
            await unread(b"\xff\xff")
    [event] = served.told
    assert (event.kind.code, event.subject) == ("call.refused", "/dss_api.v1.Topics/Remove")


async def test_a_caller_that_goes_away_leaves_an_unknown_outcome() -> None:
    reached = asyncio.Event()

    async def hang() -> None:
        reached.set()
        await asyncio.Event().wait()

    async with serving(hang) as served:
        call = served.topics.Remove(topics_pb2.RemoveTopicRequest(name="orders"))
        await reached.wait()
        call.cancel()
        async with asyncio.timeout(60):
            while not served.told:  # noqa: ASYNC110 - it is told to nobody
                await asyncio.sleep(LOOK_AGAIN_S)
    [event] = served.told
    assert (event.kind.code, event.fields["outcome"]) == ("call.done", "unknown")


async def test_refusals_without_end_are_counted_in_few_events() -> None:
    async with serving(refuse) as served:
        for number in range(REFUSALS_KEPT_AT_ONCE + 30):
            await remove(served, f"t{number}")
        assert len(served.told) == REFUSALS_KEPT_AT_ONCE
        served.audit.flush()
        assert len(served.told) == REFUSALS_KEPT_AT_ONCE + 1
        assert served.told[-1].fields["calls"] == "30"
        assert served.told[-1].sentence.startswith(f"30 more calls of {ME} were refused.")
        await remove(served)
        served.clock.at_ms += REFUSAL_KEPT_EVERY_MS
        await remove(served)
        assert len(served.told) == REFUSALS_KEPT_AT_ONCE + 1, "the count took a place too"
        served.clock.at_ms += REFUSAL_KEPT_EVERY_MS
        await remove(served)
        assert len(served.told) == REFUSALS_KEPT_AT_ONCE + 2
        served.audit.flush()
        assert served.told[-1].fields["calls"] == "2", "none is left out"


async def test_what_is_only_counted_is_told_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dssd.rpc.audit.REFUSALS_KEPT_AT_ONCE", 1)
    monkeypatch.setattr("dssd.rpc.audit.REFUSAL_KEPT_EVERY_MS", 1)
    async with serving(refuse) as served:
        await remove(served)
        await remove(served)
        async with asyncio.timeout(60):
            while len(served.told) < 2:  # noqa: ASYNC110 - it is told to nobody
                await asyncio.sleep(LOOK_AGAIN_S)
    assert served.told[1].fields["calls"] == "1"


async def test_principals_beyond_the_bound_are_forgotten_with_their_counts_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dssd.rpc.audit.REFUSED_PRINCIPALS_MAX", 1)
    monkeypatch.setattr("dssd.rpc.audit.REFUSALS_KEPT_AT_ONCE", 1)
    async with serving(refuse) as served:
        await remove(served)
        await remove(served)
        served.audit._may_keep("somebody else")
        assert [event.fields.get("calls") for event in served.told] == [None, "1"]
        assert list(served.audit._refused) == ["somebody else"]


async def test_a_change_is_committed_with_its_entry_and_a_refusal_is_told_before_its_answer() -> (
    None
):
    store = MemoryStore()

    async def commit_and_refuse() -> None:
        await store.commit([Put(TopicNameRow("orders", 1))])
        entries = [found.row for found in await store.scan(EventRow)]
        assert [entry.code for entry in entries] == ["call.done"]
        await refuse()

    async with serving(commit_and_refuse) as served:
        await remove(served)
        assert [event.kind.code for event in served.told] == ["call.refused"]
        assert not served.heard.drafts, "the entry of what was done became that of the refusal"


async def test_a_change_whose_call_came_to_a_mistake_is_told_at_once() -> None:
    store = MemoryStore()

    async def commit_and_blunder() -> None:
        await store.commit([Put(TopicNameRow("orders", 1))])
        raise ZeroDivisionError("a programmer's error")

    async with serving(commit_and_blunder) as served:
        with pytest.raises(grpc.aio.AioRpcError):
            await served.topics.Remove(topics_pb2.RemoveTopicRequest(name="orders"))
        assert [event.fields["outcome"] for event in served.told] == ["unknown"]
        assert not served.heard.drafts
