"""Edits, removals, closed sessions and the audit, on a daemon process with live clients."""

import asyncio
import getpass
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import dss_client
from dss_client import Client, Operation
from dss_client.changes import CloseSession, EditGroup, EditTopic, RemoveGroup, RemoveTopic, Undo
from dss_core.errors import (
    GroupDestroyed,
    GroupNotFound,
    NotUndoable,
    SessionClosed,
    TopicInUse,
)
from support.daemon_process import running, short_directory

PATIENCE_S = 60.0
SOON_MS = 200


@pytest.fixture
async def home() -> AsyncIterator[Path]:
    with short_directory() as directory:
        yield directory


def serve(home: Path) -> tuple[str, ...]:
    return ("--data-dir", str(home / "d"), "--listen", f"unix:{home / 's'}")


def connect(home: Path, client_id: str | None = None) -> Client:
    return dss_client.connect(client_id, endpoint=f"unix:{home / 's'}")


async def ended(client: Client, operation: Operation) -> Operation:
    async for row in client.operations.watch(operation.number):
        operation = row
    return operation


async def publish(client: Client, topic: str, *payloads: bytes) -> list[str]:
    """The durability that each acknowledgement tells."""
    async with client.producer(topic) as producer:
        return [(await producer.send(payload)).durability for payload in payloads]


async def test_an_edited_ack_wait_brings_back_what_a_live_member_holds(home: Path) -> None:
    async with (
        asyncio.timeout(PATIENCE_S),
        running(*serve(home)),
        connect(home, "ann") as client,
    ):
        await client.topics.create("orders", partitions=1)
        await publish(client, "orders", b"first")
        async with client.subscribe("$share/billing/orders/#", start="earliest") as subscription:
            records = aiter(subscription)
            first = await anext(records)
            assert not first.redelivered
            plan = await client.operations.plan(EditGroup("billing", ack_wait_ms=SOON_MS))
            assert plan.members == ("ann",)
            await client.operations.apply(plan)
            again = await anext(records)
            assert (again.offset, again.redelivered) == (first.offset, True)
            await again.ack()
        described = (await client.groups.describe("billing")).group
        assert (described.ack_wait_ms, described.revision) == (SOON_MS, 1)


async def test_the_durability_of_a_topic_changes_while_a_producer_sends(home: Path) -> None:
    async with asyncio.timeout(PATIENCE_S):
        async with running(*serve(home)) as daemon, connect(home) as client:
            created = await client.topics.create("orders", partitions=1)
            told: list[str] = []
            async with client.producer("orders") as producer:
                for durability in ("sync", "os", "sync"):
                    change = EditTopic("orders", durability=durability)
                    edit = await client.operations.apply(change)
                    edit = await ended(client, edit)
                    assert edit.state == "done"
                    told.append((await producer.send(durability.encode())).durability)
            assert told == ["sync", "os", "sync"]
            assert (await client.topics.describe("orders")).revision == created.revision + 2
            await daemon.kill()
        async with running(*serve(home)), connect(home) as client:
            assert (await client.topics.describe("orders")).durability == "sync"
            payloads = [record.payload async for record in client.read("orders/#")]
            assert payloads == [b"sync", b"os", b"sync"]
            undone = await client.operations.apply(Undo(edit.number))
            assert (await ended(client, undone)).state == "done"
            assert (await client.topics.describe("orders")).durability == "os"


async def test_removals_end_what_they_remove_and_cannot_be_taken_back(home: Path) -> None:
    async with (
        asyncio.timeout(PATIENCE_S),
        running(*serve(home)),
        connect(home, "ann") as client,
    ):
        await client.topics.create("orders", partitions=1)
        await publish(client, "orders", b"1", b"2")
        async with client.subscribe("$share/billing/orders/#", start="earliest") as subscription:
            await anext(aiter(subscription))
            with pytest.raises(TopicInUse):
                await client.operations.plan(RemoveTopic("orders"))
            plan = await client.operations.plan(RemoveGroup("billing"))
            assert (plan.undoable, plan.members) == (False, ("ann",))
            removal = await ended(client, await client.operations.apply(plan))
            assert removal.state == "done"
            with pytest.raises(GroupDestroyed):
                async for _ in subscription:
                    pass
        with pytest.raises(GroupNotFound):
            await client.groups.describe("billing")
        with pytest.raises(NotUndoable):
            await client.operations.apply(Undo(removal.number))
        removal = await client.operations.apply(RemoveTopic("orders"))
        assert (await ended(client, removal)).state == "done"
        assert await client.topics.list() == ()


async def test_a_client_whose_session_is_closed_ends_and_stays_away(home: Path) -> None:
    async with asyncio.timeout(PATIENCE_S), running(*serve(home)), connect(home) as operator:
        await operator.topics.create("orders", partitions=1)
        async with connect(home, "ann") as ann:
            async with ann.subscribe("orders/#") as subscription:
                [session] = await operator.sessions.list()
                assert (session.client_id, session.state) == ("ann", "connected")
                assert (session.subscriptions, session.private_subscriptions) == (1, 1)
                assert session.peer == f"unix: pid {os.getpid()}, as it says"
                closing = await operator.operations.apply(CloseSession("ann"), reason="stuck")
                with pytest.raises(SessionClosed):
                    async for _ in subscription:
                        pass
            assert (await ended(operator, closing)).state == "done"
            assert await operator.sessions.list() == ()
            assert await operator.groups.list(all=True) == ()


async def test_the_audit_tells_who_changed_what(home: Path) -> None:
    async with asyncio.timeout(PATIENCE_S), running(*serve(home)), connect(home) as client:
        await client.topics.create("orders", partitions=1)
        await client.topics.create("orders", partitions=1, if_not_exists=True)
        await client.groups.create("$share/billing/orders/#")
        await client.groups.create("$share/billing/orders/#", if_not_exists=True)
        with pytest.raises(TopicInUse):
            await client.topics.remove("orders")
        await client.operations.apply(EditGroup("billing", ack_wait_ms=1_000))
        with pytest.raises(GroupNotFound):
            await client.operations.apply(EditGroup("nobody", ack_wait_ms=1_000))
        await publish(client, "orders", b"x")
        assert not await client.groups.remove("nobody", if_exists=True)
        await client.groups.remove("billing")
        codes = ("call.done", "call.refused", "operation.applied")
        me = f"local:{getpass.getuser()}"
        while True:
            page = await client.events.list(codes=codes, principal=me)
            if len(page.events) >= 6:
                break
            await asyncio.sleep(0.05)
    assert [(event.code, event.subject) for event in page.events] == [
        ("call.done", "orders"),
        ("call.done", "$share/billing/orders/#"),
        ("call.refused", "orders"),
        ("operation.applied", "billing@orders/#"),
        ("call.refused", "nobody"),
        ("call.done", "billing"),
    ]
    pid = str(os.getpid())
    assert {event.fields.get("pid", pid) for event in page.events} == {pid}
    assert page.events[0].fields["user"] == getpass.getuser()
    assert f"pid {pid}" in page.events[3].fields["origin"]
    assert page.events[4].fields["outcome"] == GroupNotFound.code
