"""A token for `orders/eu/#` and the group `billing`, in the hands of who wants more.

Every way to others' records, groups and names is tried over the wire, with names that mean
something else to somebody else. What is let through reaches nothing that is not the token's, and
what is not its own is afterwards as it was before.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
import pytest_asyncio

import dss_client
from dss_api.v1 import (
    groups_pb2,
    groups_pb2_grpc,
    jobs_pb2,
    jobs_pb2_grpc,
    log_pb2,
    log_pb2_grpc,
    operations_pb2,
    operations_pb2_grpc,
    queues_pb2,
    queues_pb2_grpc,
    topics_pb2,
    topics_pb2_grpc,
    types_pb2,
)
from dss_client.access import Permission
from dss_client.changes import CreateJob
from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.errors import DssError
from support.daemon_process import running, short_directory
from support.proof_share import only_in_proof

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),  # one daemon for all
    only_in_proof,
]

OWN = (
    Permission("consume", ("orders/eu/#",), ("billing",)),
    Permission("produce", ("orders/eu/#",)),
    Permission("operate", ("orders/eu/#",), ("billing",)),
)
OWN_GROUP, OTHERS_GROUP = "billing@orders/eu/#", "billing@payments/#"
SECRET = b"iban 42"
PATIENCE_S = 20.0


class Eve:
    """Who has the token."""

    def __init__(self, channel: grpc.aio.Channel, token: str) -> None:
        self._how: dict[str, Any] = {
            "metadata": (("authorization", f"Bearer {token}"),),
            "timeout": PATIENCE_S,
        }
        self.topics = topics_pb2_grpc.TopicsStub(channel)
        self.groups = groups_pb2_grpc.GroupsStub(channel)
        self.grants = groups_pb2_grpc.GrantsStub(channel)
        self.queues = queues_pb2_grpc.QueuesStub(channel)
        self.log = log_pb2_grpc.LogStub(channel)
        self.operations = operations_pb2_grpc.OperationsStub(channel)
        self.jobs = jobs_pb2_grpc.JobsStub(channel)

    async def told(self, method: Any, message: Any) -> str:  # noqa: ANN401 - of any method
        """All that a call answers, or the status that it ends with."""
        try:
            call = method(message, **self._how)
            if hasattr(call, "__aiter__"):
                return "".join([str(each) async for each in call])
            return str(await call)
        except grpc.aio.AioRpcError as refused:
            return refused.code().name

    async def frames(self, topic: str, *subjects: str, epoch: int = 1) -> str:
        """What a producer is told of one frame with a record of each of these subjects."""
        columns = Columns([b"x"] * len(subjects), None, list(subjects), None, 1)
        frame = build_frame(columns, partition=0, producer_id=bytes(16), sequence=0)
        message = log_pb2.ProduceRequest(topic=topic, topic_epoch=epoch, frames=[frame])

        async def messages() -> AsyncIterator[log_pb2.ProduceRequest]:
            yield message

        try:
            call = self.log.Produce(messages(), **self._how)
            return "".join([str(each) async for each in call])
        except grpc.aio.AioRpcError as refused:
            return refused.code().name


class Site:
    def __init__(self, admin: dss_client.Client, eve: Eve, remote: str, token: str) -> None:
        self.admin = admin
        self.eve = eve
        self.remote = remote
        self.token = token

    async def others(self) -> Sequence[object]:
        """What is not Eve's, as it is now."""
        records = [each.payload async for each in self.admin.read("payments/#")]
        described = await self.admin.groups.describe(OTHERS_GROUP)
        topic = await self.admin.topics.describe("payments")
        operations = [(each.number, each.state) for each in await self.admin.operations.list()]
        jobs = [(each.name, each.state) for each in await self.admin.jobs.list()]
        names = sorted(each.topic.name for each in await self.admin.topics.list())
        group = (described.group.lag, described.group.paused, described.group.revision)
        return (records, group, topic.partitions, topic.retention_ms, operations, jobs, names)


@asynccontextmanager
async def opened() -> AsyncIterator[Site]:
    with short_directory() as folder:
        listens = ("--listen", f"unix:{folder}/s", "--listen", "127.0.0.1:0,clients=tokens")
        async with running("--data-dir", f"{folder}/d", *listens) as daemon:
            local, remote = daemon.endpoints
            async with dss_client.connect(endpoint=local) as admin:
                await admin.topics.create("orders", partitions=1)
                await admin.topics.create("payments", partitions=1)
                for name in (OWN_GROUP, OTHERS_GROUP):
                    group, _, own = name.partition("@")
                    filter = f"$share/{group}/{own}"
                    await admin.groups.create(filter, start="earliest", max_deliver=3)
                for topic, subject in (("payments", "payments/1"), ("orders", "orders/us/1")):
                    async with admin.producer(topic) as producer:
                        await producer.send(SECRET, subject=subject)
                job = CreateJob("haul", "replay", source="payments", target="orders")
                await admin.operations.apply(await admin.operations.plan(job), reason="a test")
                token = (await admin.access.add_token("eve", OWN)).token
                async with grpc.aio.insecure_channel(remote) as channel:
                    yield Site(admin, Eve(channel, token), remote, token)
            assert await daemon.stop() == 0
            assert "Traceback" not in daemon.said


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site() -> AsyncIterator[Site]:
    async with opened() as made:
        yield made


DEAD = queues_pb2.QUEUE_LEVEL_DEAD
SEEK = operations_pb2.CURSOR_DIRECTION_SEEK
DENIED = "PERMISSION_DENIED"
REFUSED = {DENIED, "INVALID_ARGUMENT"}

SUBJECTS_DENIED = (
    "orders/us/1", "orders", "orders/EU/1", "orders/eu1", "orders//eu", "/orders/eu/1",
    "payments/1", "orders/e\u0443/1", "orders/eu\u2215us", "orders/\u202eue", " orders/eu/1",
    "orders/../orders/eu/1",
    "$dlq/1/1", "$retry/1/1", "$dss/x",
    # What stands for others in a filter stands for nothing in a subject.
    "orders/+/1", "orders/#", "#", "orders/eu/#", "orders/eu/+", "orders/eu/\0",
)  # fmt: skip


async def test_no_record_gets_under_another_subject(site: Site) -> None:
    for subject in SUBJECTS_DENIED:
        record = types_pb2.Record(payload=b"x", subject=subject)
        for topic in ("orders", "payments"):
            request = log_pb2.PublishRequest(topic=topic, records=[record])
            assert await site.eve.told(site.eve.log.Publish, request) in REFUSED, subject


async def test_a_frame_is_refused_for_one_of_its_subjects_and_dots_are_no_way_up(
    site: Site,
) -> None:
    for subjects in (("orders/eu/1", "orders/us/1"), ("orders/eu/1", "payments/1"), ("orders",)):
        said = await site.eve.frames("orders", *subjects)
        assert "DSS5009" in said
        assert "acks" not in said
    assert await site.eve.frames("payments", "payments/1") == DENIED
    assert await site.eve.frames("payments", "orders/eu/1") == DENIED
    epoch = (await site.admin.topics.describe("orders")).topic_epoch
    subjects = ("orders/eu/../us/1", "orders/eu/")
    assert "acks" in await site.eve.frames("orders", *subjects, epoch=epoch)
    found = [each.subject async for each in site.admin.read("orders/us/#")]
    assert found == ["orders/us/1"], "dots are a level like any other"


FILTERS = (
    "#", "orders/#", "orders/+/1", "+/eu/#", "orders/us/1", "orders/eu/../#/x", "payments/#",
    "+/+", "orders/eu/#/../us", "$dlq/#", "$dlq/1/#", "$retry/#", "orders/eu/#,payments/#", "",
    "orders/e+",
)  # fmt: skip


async def test_no_filter_brings_others_records(site: Site) -> None:
    eve = site.eve
    for filter in FILTERS:
        for request in (
            log_pb2.ReadRequest(filter=filter),
            log_pb2.ReadRequest(filter=filter, stream="orders/0/0"),
            log_pb2.ReadRequest(filter=filter, stream="payments/0/0"),
        ):
            assert await eve.told(eve.log.Read, request) in REFUSED, filter
        made = groups_pb2.CreateGroupRequest(filter=f"$share/billing/{filter}")
        assert await eve.told(eve.groups.Create, made) in REFUSED, filter


async def test_no_subscription_brings_others_records(site: Site, tmp_path: Path) -> None:
    token_file = tmp_path / "eve.token"
    token_file.touch(0o600)
    token_file.write_text(site.token)
    texts = [*FILTERS, *(f"$share/billing/{each}" for each in FILTERS), "$share/b*/orders/eu/#"]
    async with dss_client.connect(
        "eve", endpoint=site.remote, token_file=token_file, patient=False
    ) as client:
        for text in texts:
            with pytest.raises((DssError, ValueError)):
                async with client.subscribe(text, start="earliest") as records:
                    await anext(aiter(records))


def others_groups() -> Iterable[tuple[str, str, Any]]:
    """Questions about a group that is not hers, however it is written."""
    for group in (
        OTHERS_GROUP,
        "$share/billing/payments/#",
        "*",
        "b*",
        "bill\u0131ng",
        "billing@*",
    ):
        yield "groups", "Describe", groups_pb2.DescribeGroupRequest(group=group)
        yield "groups", "Offsets", groups_pb2.GroupOffsetsRequest(group=group)
        yield "groups", "Shards", groups_pb2.ShardsRequest(group=group)
        yield "groups", "Verify", groups_pb2.VerifyRequest(group=group, scan=True)
        yield "groups", "Stuck", groups_pb2.StuckRequest(group=group)
        yield "groups", "Why", groups_pb2.WhyRequest(group=group, stream="payments/0/0", offset=0)
        yield "groups", "Remove", groups_pb2.RemoveGroupRequest(group=group, if_unused=True)
        yield "grants", "List", groups_pb2.ListGrantsRequest(group=group)
        yield "queues", "List", queues_pb2.ListEntriesRequest(group=group, level=DEAD, whole=True)
        yield "queues", "Errors", queues_pb2.CountErrorsRequest(group=group, level=DEAD)
        yield "queues", "Keys", queues_pb2.CountKeysRequest(group=group, level=DEAD)
        dead = log_pb2.ReadRequest(stream="payments/0/0", dead_letters=group)
        yield "log", "Read", dead
        yield "topics", "Locate", topics_pb2.LocateRequest(name="payments", dead_letters=group)


def by_her_own_group() -> Iterable[tuple[str, str, Any]]:
    """Her group, and what it does not read."""
    for group in ("billing@orders/eu/#", "$share/billing/orders/eu/#"):
        yield "groups", "Why", groups_pb2.WhyRequest(group=group, stream="payments/0/0", offset=0)
        yield "groups", "Why", groups_pb2.WhyRequest(group=group, topic="payments", key=b"k")
        yield (
            "groups",
            "Offsets",
            groups_pb2.GroupOffsetsRequest(group=group, streams=["payments/0/0"]),
        )
        asking = queues_pb2.ListEntriesRequest
        yield "queues", "List", asking(group=group, level=DEAD, whole=True, stream="payments/0/0")
        yield "queues", "List", asking(group=group, level=DEAD, whole=True, page_token="1/0/0")
        dead = log_pb2.ReadRequest(stream="payments/0/0", dead_letters=group)
        yield "log", "Read", dead
        yield "topics", "Locate", topics_pb2.LocateRequest(name="payments", dead_letters=group)


async def test_nothing_is_told_of_others_groups_topics_jobs_and_operations(site: Site) -> None:
    asked = [
        *others_groups(),
        *by_her_own_group(),
        ("topics", "Describe", topics_pb2.DescribeTopicRequest(name="payments")),
        ("topics", "Locate", topics_pb2.LocateRequest(name="payments")),
        ("topics", "List", topics_pb2.ListTopicsRequest()),
        ("groups", "List", groups_pb2.ListGroupsRequest(all=True)),
        ("groups", "List", groups_pb2.ListGroupsRequest(filter="name=billing", sort="-lag")),
        ("grants", "List", groups_pb2.ListGrantsRequest()),
        ("jobs", "Get", jobs_pb2.GetJobRequest(job="haul")),
        ("jobs", "ListChunks", jobs_pb2.ListChunksRequest(job="haul")),
        ("jobs", "List", jobs_pb2.ListJobsRequest()),
        ("operations", "Get", operations_pb2.GetOperationRequest(number=1)),
        ("operations", "List", operations_pb2.ListOperationsRequest()),
        ("operations", "Watch", operations_pb2.WatchOperationRequest(number=1)),
        ("log", "Read", log_pb2.ReadRequest(stream="payments/0/0")),
        ("log", "Read", log_pb2.ReadRequest(stream="orders/0/0")),
        ("log", "Runs", log_pb2.RunsRequest(stream="payments/0/0", end=9)),
    ]
    for stub, method, message in asked:
        said = await site.eve.told(getattr(getattr(site.eve, stub), method), message)
        assert "payments" not in said, (method, message)
        assert SECRET.decode() not in said, (method, message)
        assert "haul" not in said, (method, message)


def changes() -> Iterable[operations_pb2.Change]:
    """Changes of what is not hers; some by the name of what is."""
    pb = operations_pb2
    change = pb.Change
    stream, spans = "payments/0/0", [pb.RecordSpan(stream="payments/0/0", offset=0, count=1)]
    for group in (OTHERS_GROUP, "$share/billing/payments/#", "*", "billing@*"):
        yield change(pause_group=pb.PauseGroup(group=group))
        yield change(remove_group=pb.RemoveGroup(group=group))
        yield change(evict=pb.Evict(group=group, borrower="x"))
        yield change(edit_group=pb.EditGroup(group=group, ack_wait_ms=5_000))
        yield change(set_shard_count=pb.SetShardCount(group=group, shards=1))
        yield change(move_cursors=pb.MoveCursors(group=group, direction=SEEK, latest=True))
        yield change(redrive_dead_letters=pb.RedriveDeadLetters(group=group))
        yield change(discard_dead_letters=pb.DiscardDeadLetters(group=group, everything=True))
        yield change(bury_retries=pb.BuryRetries(group=group, everything=True))
        yield change(skip_records=pb.SkipRecords(group=group, stream=stream))
    target = pb.StreamTarget(stream=stream, storage_topic_id=2, offset=1)
    lanes = [
        pb.LaneRanges(stream=stream, storage_topic_id=2, ranges=[types_pb2.Range(start=0, end=1)])
    ]
    yield change(move_cursors=pb.MoveCursors(group=OWN_GROUP, direction=SEEK, targets=[target]))
    yield change(
        move_cursors=pb.MoveCursors(group=OWN_GROUP, direction=SEEK, streams=[stream], latest=True)
    )
    offsets = [groups_pb2.StreamOffsets(topic="payments", partitions=1, end=1)]
    yield change(import_offsets=pb.ImportOffsets(group=OWN_GROUP, streams=offsets))
    yield change(skip_records=pb.SkipRecords(group=OWN_GROUP, stream=stream))
    yield change(skip_records=pb.SkipRecords(group=OWN_GROUP, stream="orders/0/0", more=spans))
    yield change(redeliver_records=pb.RedeliverRecords(group=OWN_GROUP, stream=stream))
    yield change(redrive_dead_letters=pb.RedriveDeadLetters(group=OWN_GROUP, lanes=lanes))
    yield change(discard_dead_letters=pb.DiscardDeadLetters(group=OWN_GROUP, lanes=lanes))
    yield change(retry_now=pb.RetryNow(group=OWN_GROUP, lanes=lanes))
    for topic in ("payments", "orders", "+", "#"):
        yield change(edit_topic=pb.EditTopic(topic=topic, retention_ms=60_000))
        yield change(remove_topic=pb.RemoveTopic(topic=topic, force=True))
        yield change(grow_topic=pb.GrowTopic(topic=topic, partitions=2))
        yield change(switch_topic=pb.SwitchTopic(topic=topic))
    yield change(undo=pb.Undo(number=1))
    yield change(close_session=pb.CloseSession(client_id="x"))
    yield change(adopt_sessions=pb.AdoptSessions(to="token:eve"))
    yield change(run_task=pb.RunTask(task="export", arguments={"topic": "payments"}))
    yield change(create_schedule=pb.CreateSchedule(schedule="s", task="export", cron="@daily"))
    yield change(
        create_job=pb.CreateJob(name="j", kind="replay", source="payments", target="orders")
    )
    yield change(
        create_job=pb.CreateJob(name="j", kind="export", source="orders", dead_letters=OWN_GROUP)
    )
    for job in ("pause_job", "resume_job", "cancel_job", "remove_job"):
        asked = change()
        getattr(asked, job).job = "haul"
        yield asked
    yield change()


async def test_nothing_of_others_is_changed(site: Site) -> None:
    eve, before = site.eve, await site.others()
    for change in changes():
        planned = await eve.told(eve.operations.Plan, operations_pb2.PlanRequest(change=change))
        assert planned.isupper(), f"{change} is planned: {planned}"
        asked = operations_pb2.ApplyRequest(change=change, reason="x")
        applied = await eve.told(eve.operations.Apply, asked)
        assert applied.isupper(), f"{change} is applied: {applied}"
    for stub, method, message in (
        ("topics", "Remove", topics_pb2.RemoveTopicRequest(name="payments", force=True)),
        ("topics", "Remove", topics_pb2.RemoveTopicRequest(name="orders", force=True)),
        ("topics", "Create", topics_pb2.CreateTopicRequest(name="x", partitions=1)),
        (
            "topics",
            "Create",
            topics_pb2.CreateTopicRequest(
                name="x", partitions=1, patterns=["orders/eu/#", "payments/#"]
            ),
        ),
        ("groups", "Remove", groups_pb2.RemoveGroupRequest(group=OTHERS_GROUP)),
        ("operations", "Cancel", operations_pb2.CancelOperationRequest(number=1)),
        ("jobs", "Acquire", jobs_pb2.AcquireJobRequest(job="haul", token=b"x" * 16)),
        ("jobs", "Renew", jobs_pb2.RenewJobRequest(job="haul", epoch=1)),
        ("jobs", "Commit", jobs_pb2.CommitIngestRequest(job="haul", epoch=1)),
        ("jobs", "GiveUp", jobs_pb2.GiveUpJobRequest(job="haul", epoch=1)),
    ):
        said = await eve.told(getattr(getattr(eve, stub), method), message)
        assert said.isupper(), (method, said)
    assert await site.others() == before


async def test_her_own_is_hers(site: Site) -> None:
    """Or all of the above would hold for a token that is let at nothing."""
    eve = site.eve
    described = groups_pb2.DescribeGroupRequest(group=OWN_GROUP)
    assert "billing" in await eve.told(eve.groups.Describe, described)
    pause = operations_pb2.Change(pause_group=operations_pb2.PauseGroup(group=OWN_GROUP))
    planned = await eve.told(eve.operations.Plan, operations_pb2.PlanRequest(change=pause))
    assert "pause" in planned
    read = await eve.told(eve.log.Read, log_pb2.ReadRequest(filter="orders/eu/#"))
    assert not read.isupper()
