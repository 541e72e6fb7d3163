"""SQLite's lock on the store outlives all that a daemon does, so no other process opens it.

The kernel drops it as soon as the daemon closes any descriptor of that file. So whatever is called,
scraped or done by the clock here, the lock of the start is there afterwards.
"""

import asyncio
import os
import re
import sqlite3
import subprocess
import sys
import urllib.request
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager, closing
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from google.protobuf import descriptor_pool, message_factory

import dssd.daemon
import dssd.rpc.reflection
from dss_api.v1 import operations_pb2
from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.errors import ExitCode
from dssd.data_directory import STORE_NAME
from dssd.lock import LOCK_NAME
from dssd.rpc.principal import METHOD_ROLES
from support.daemon_process import DaemonProcess, running, short_directory
from support.file_locks import locks_on

# Loaded, they make the messages of all services known.
assert dssd.daemon
assert dssd.rpc.reflection

PATIENCE_S = 30.0
UNANSWERED = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNKNOWN, grpc.StatusCode.UNIMPLEMENTED)
CREATE = "/dss_api.v1.Topics/Create"
APPLY, WATCH = "/dss_api.v1.Operations/Apply", "/dss_api.v1.Operations/Watch"
OUR_CLIENT = f"dss-client pid/{os.getpid()}"
"""What makes the daemon look for the process of a call among its sockets."""

G, S, T = {"group": "billing"}, {"schedule": "nightly"}, {"topic": "orders"}
STREAM = {"stream": "orders/0/0"}
CHANGES: Sequence[tuple[str, dict[str, Any]]] = (
    ("pause_group", G),
    ("resume_group", G),
    ("move_cursors", {**G, "direction": 1, "earliest": True}),
    ("undo", {"number": 3}),
    ("import_offsets", G),
    ("skip_records", {**G, **STREAM, "offset": 0, "count": 1}),
    ("redeliver_records", {**G, **STREAM, "offset": 0, "count": 1}),
    ("rebalance", G),
    ("evict", {**G, "borrower": "ada"}),
    ("transfer_grant", {**G, **STREAM, "to": "ada"}),
    ("revoke_grant", {**G, **STREAM}),
    ("edit_group", {**G, "ack_wait_ms": 40_000, "max_deliver": 3}),
    ("redrive_dead_letters", G),
    ("discard_dead_letters", {**G, "everything": True}),
    ("retry_now", G),
    ("skip_retries", {**G, "everything": True}),
    ("bury_retries", {**G, "everything": True}),
    ("set_shard_count", {**G, "shards": 1}),
    ("edit_topic", {**T, "durability": "os"}),
    ("add_storage_topic", {**T, "partitions": 3}),
    ("switch_topic", T),
    ("grow_topic", {**T, "partitions": 5}),
    ("adopt_sessions", {"to": "loopback", "clients": ["a*"]}),
    ("close_session", {"client_id": "ada"}),
    ("create_schedule", {**S, "task": "sessions", "cron": "0 3 * * *"}),
    ("edit_schedule", {**S, "cron": "0 4 * * *"}),
    ("pause_schedule", S),
    ("resume_schedule", S),
    ("remove_schedule", S),
    ("create_job", {"name": "copy", "kind": "replay", "source": "orders", "target": "copies"}),
    ("pause_job", {"job": "copy"}),
    ("resume_job", {"job": "copy"}),
    ("cancel_job", {"job": "copy"}),
    ("remove_job", {"job": "copy"}),
    ("remove_group", G),
    ("remove_topic", {"topic": "copies"}),
    ("run_task", {"task": "checkpoint"}),
)
"""One of each kind, in an order in which each finds what it is about."""
TASKS: dict[str, dict[str, str]] = {
    "backup": {},
    "checkpoint": {},
    "dlq-check": {},
    "dlq-expire": {"older-than": "30d"},
    "dlq-redrive": {},
    "export": {"topic": "orders"},
    "lag-check": {"max-lag": "0"},
    "rebalance": {},
    "retention": {},
    "scrub": {},
    "sessions": {},
    "snapshot": {},
}

FRAME = build_frame(
    Columns([b"x"], None, "orders", None, 1), partition=0, producer_id=bytes(16), sequence=0
)
PUT = {
    "name": "token:ada",
    "permissions": [{"role": "read", "topics": ["#"]}],
    "token_sha256": bytes(32),
}
CALLS: Sequence[tuple[str, dict[str, Any]]] = (
    ("/dss_api.v1.Log/Produce", {**T, "topic_epoch": 2, "frames": [FRAME]}),
    ("/dss_api.v1.Log/Read", {"filter": "orders/#"}),
    ("/dss_api.v1.Log/Runs", {**STREAM, "storage_topic_id": 1, "end": 1}),
    ("/dss_api.v1.Sessions/Attach", {"open": {"client_id": "ada", "session_expiry_s": 60}}),
    ("/dss_api.v1.Sessions/List", {}),
    ("/dss_api.v1.Topics/List", {}),
    ("/dss_api.v1.Topics/Describe", {"name": "orders"}),
    ("/dss_api.v1.Topics/Locate", {"name": "orders"}),
    ("/dss_api.v1.Groups/List", {"all": True}),
    ("/dss_api.v1.Groups/Describe", G),
    ("/dss_api.v1.Groups/Shards", G),
    ("/dss_api.v1.Groups/Offsets", G),
    ("/dss_api.v1.Groups/Why", {**G, **STREAM, "offset": 0}),
    ("/dss_api.v1.Groups/Stuck", {}),
    ("/dss_api.v1.Groups/Verify", {**G, "scan": True}),
    ("/dss_api.v1.Grants/List", {}),
    ("/dss_api.v1.Queues/List", {**G, "level": "QUEUE_LEVEL_DEAD"}),
    ("/dss_api.v1.Queues/Errors", {**G, "level": "QUEUE_LEVEL_DEAD"}),
    ("/dss_api.v1.Queues/Keys", {**G, "level": "QUEUE_LEVEL_DEAD"}),
    ("/dss_api.v1.Daemon/Status", {}),
    ("/dss_api.v1.Daemon/Findings", {}),
    ("/dss_api.v1.Events/List", {}),
    ("/dss_api.v1.Events/Watch", {"after_number": 0}),
    ("/dss_api.v1.Watch/Watch", {}),
    ("/dss_api.v1.Operations/Plan", {"change": {"edit_topic": {**T, "retention_ms": 1_000_000}}}),
    ("/dss_api.v1.Operations/Get", {"number": 1}),
    ("/dss_api.v1.Operations/List", {}),
    ("/dss_api.v1.Operations/Watch", {"number": 1}),
    ("/dss_api.v1.Operations/Cancel", {"number": 1}),
    ("/dss_api.v1.Schedules/List", {}),
    ("/dss_api.v1.Schedules/Describe", {"name": "nightly"}),
    ("/dss_api.v1.Schedules/Preview", {"cron": "0 3 * * *", "count": 3}),
    ("/dss_api.v1.Schedules/Trigger", {"name": "nightly"}),
    ("/dss_api.v1.Schedules/Tasks", {}),
    ("/dss_api.v1.Jobs/List", {}),
    ("/dss_api.v1.Jobs/Get", {"job": "copy"}),
    ("/dss_api.v1.Jobs/ListChunks", {"job": "copy"}),
    ("/dss_api.v1.Jobs/Acquire", {"job": "copy", "driver": "d", "token": bytes(16)}),
    ("/dss_api.v1.Jobs/Renew", {"job": "copy", "epoch": 1}),
    ("/dss_api.v1.Jobs/Stage", {"job": "copy", "begin": {"epoch": 1, "name": "a"}}),
    ("/dss_api.v1.Jobs/Commit", {"job": "copy", "epoch": 1, "files": [{"name": "a"}]}),
    ("/dss_api.v1.Jobs/GiveUp", {"job": "copy", "epoch": 1, "reason": "a test"}),
    ("/dss_api.v1.Groups/Remove", {"group": "other", "if_exists": True}),
    ("/dss_api.v1.Topics/Remove", {"name": "other", "if_exists": True}),
    ("/dss_api.v1.Access/Put", PUT),
    ("/dss_api.v1.Access/List", {}),
    ("/dss_api.v1.Access/Rotate", {"name": "token:ada", "token_sha256": bytes([1] * 32)}),
    ("/dss_api.v1.Access/Confirm", {}),
    ("/dss_api.v1.Access/Remove", {"name": "token:ada"}),
    ("/dss_api.v1.Backups/Create", {}),
    ("/dss_api.v1.Backups/Confirm", {"id": bytes(16)}),
    ("/grpc.health.v1.Health/Check", {}),
    ("/grpc.health.v1.Health/List", {}),
    ("/grpc.health.v1.Health/Watch", {}),
    (
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
        {"list_services": "*"},
    ),
)
BEGINNINGS: Sequence[tuple[str, dict[str, Any]]] = (
    (CREATE, {"name": "orders", "partitions": 1}),
    (CREATE, {"name": "copies", "partitions": 1}),
    ("/dss_api.v1.Groups/Create", {"filter": "$share/billing/orders/#"}),
    ("/dss_api.v1.Log/Publish", {**T, "records": [{"payload": b"x", "subject": "orders"}]}),
)


class Calls:
    """Calls of any method of a daemon, by name."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._channel = channel

    async def replies(self, method: str, fields: dict[str, Any]) -> AsyncGenerator[Any, None]:
        """Its replies, until the daemon or the reader ends them."""
        service, name = method.strip("/").split("/")
        known = descriptor_pool.Default().FindServiceByName(service).methods_by_name[name]
        request = message_factory.GetMessageClass(known.input_type)(**fields)
        kind = "_".join(
            "stream" if streams else "unary"
            for streams in (known.client_streaming, known.server_streaming)
        )
        answer = message_factory.GetMessageClass(known.output_type).FromString
        ask = getattr(self._channel, kind)(method, type(request).SerializeToString, answer)
        if not known.server_streaming:
            yield await ask(request)
            return
        call = ask() if known.client_streaming else ask(request)
        if known.client_streaming:
            await call.write(request)
        try:
            async for reply in call:
                yield reply
        finally:
            call.cancel()

    async def first_reply(self, method: str, **fields: Any) -> Any:  # noqa: ANN401 - of any method
        """The first of them, or with what status it was refused."""
        async with asyncio.timeout(PATIENCE_S), aclosing(self.replies(method, fields)) as replies:
            try:
                return await anext(replies, None)
            except grpc.aio.AioRpcError as refused:
                return refused.code()

    async def change(self, kind: str, fields: dict[str, Any]) -> None:
        """Apply it, and wait for its end."""
        applied = await self.first_reply(APPLY, change={kind: fields})
        if isinstance(applied, grpc.StatusCode):
            return
        watched = self.replies(WATCH, {"number": applied.number})
        async with asyncio.timeout(PATIENCE_S), aclosing(watched):
            async for _ in watched:
                pass


class Locks:
    """Those of the store and of its directory, as they were when the daemon began to serve."""

    def __init__(self, daemon: DaemonProcess, data: Path) -> None:
        self._paths = (data / STORE_NAME, data, data / LOCK_NAME)
        self._began = [locks_on(path) for path in self._paths]
        for locks in self._began:
            assert locks
            assert all(f" WRITE {daemon.process.pid} " in lock for lock in locks)

    def check(self, what: str) -> None:
        assert [locks_on(path) for path in self._paths] == self._began, f"after {what}"


@asynccontextmanager
async def serving(data: Path) -> AsyncIterator[tuple[DaemonProcess, Calls, Locks]]:
    options = ("--reflection", "--metrics", "127.0.0.1:0")
    async with running("--data-dir", str(data), *options) as daemon:
        agent = [("grpc.primary_user_agent", OUR_CLIENT), ("grpc.use_local_subchannel_pool", 1)]
        async with grpc.aio.insecure_channel(daemon.endpoint, options=agent) as channel:
            yield daemon, Calls(channel), Locks(daemon, data)


def test_every_method_kind_of_change_and_task_is_tried_here() -> None:
    called = {method for method, _ in (*BEGINNINGS, *CALLS)} | {APPLY}
    assert called == set(METHOD_ROLES)
    kinds = {field.name for field in operations_pb2.Change.DESCRIPTOR.fields}
    assert {kind for kind, _ in CHANGES} == kinds


async def test_no_call_change_task_or_scrape_costs_the_store_its_lock() -> None:
    with short_directory() as data:
        async with serving(data) as (daemon, calls, locks):
            made = [each for each in CHANGES if each[0].startswith("create_")]
            await call_each(calls, locks, BEGINNINGS)
            await apply_each(calls, locks, made)
            await call_each(calls, locks, CALLS)
            await apply_each(calls, locks, [each for each in CHANGES if each not in made])
            tasks = (await calls.first_reply("/dss_api.v1.Schedules/Tasks")).tasks
            assert {task.name for task in tasks} == set(TASKS)
            runs = [{"task": task, "arguments": given} for task, given in TASKS.items()]
            await apply_each(calls, locks, [("run_task", run) for run in runs])
            await asyncio.to_thread(scrape, daemon)
            locks.check("a scrape")
            await asyncio.to_thread(refused_check, data)
            locks.check("a check that was refused")
            assert await daemon.stop() == 0


async def call_each(
    calls: Calls, locks: Locks, methods: Sequence[tuple[str, dict[str, Any]]]
) -> None:
    for method, fields in methods:
        answer = await calls.first_reply(method, **fields)
        assert answer not in UNANSWERED, method
        locks.check(method)


async def apply_each(
    calls: Calls, locks: Locks, changes: Sequence[tuple[str, dict[str, Any]]]
) -> None:
    for kind, fields in changes:
        await calls.change(kind, fields)
        locks.check(f"{kind} {fields}")


def scrape(daemon: DaemonProcess) -> None:
    (where,) = re.findall(r"http://\S+/metrics", daemon.said)
    with urllib.request.urlopen(where) as answer:
        assert b"dss_" in answer.read()


def refused_check(data: Path) -> None:
    command = [sys.executable, "-m", "dssd", "check", "--data-dir", str(data)]
    checked = subprocess.run(command, check=False, capture_output=True)
    assert checked.returncode == ExitCode.LOCKED


async def test_another_program_cannot_open_the_store_and_a_kill_loses_nothing() -> None:
    with short_directory() as data:
        async with serving(data) as (daemon, calls, _):
            await calls.first_reply(CREATE, name="first", partitions=1)
            # As a shell of SQLite, a backup or an indexer does. The last one to close the database
            # writes the log back and removes it.
            with (
                closing(sqlite3.connect(data / STORE_NAME, timeout=0)) as reader,
                pytest.raises(sqlite3.OperationalError, match="locked"),
            ):
                reader.execute("SELECT count(*) FROM sqlite_schema").fetchall()
            for number in range(5):
                await calls.first_reply(CREATE, name=f"later{number}", partitions=1)
            await daemon.kill()
        async with serving(data) as (_, calls, _):
            listed = await calls.first_reply("/dss_api.v1.Topics/List")
            names = {each.topic.name for each in listed.topics}
            assert names == {"first", *(f"later{number}" for number in range(5))}
