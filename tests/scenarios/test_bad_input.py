"""Every bad input, past any client's own checks: its own code, a hint, and nothing is lost.

Each test sends its bad input between good ones; at the end the topic holds exactly the good ones.
"""

import os
import struct
from collections.abc import AsyncIterable, AsyncIterator, Awaitable
from typing import Any

import grpc.aio
import pytest
import pytest_asyncio

from dss_api.v1 import groups_pb2, log_pb2, topics_pb2, types_pb2
from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.decode import decode
from dss_core.errors import DssError
from dss_core.frame import LAYOUT_ROWS, assemble
from dss_core.lane import ENTRIES, RETRY, internal_name
from dss_core.limits import FRAME_BYTES_MAX, RECORD_BYTES_MAX
from dss_core.routing import Router, key_hash, partition_of
from dssd.rpc.publish import PUBLISH_RECORDS_MAX
from support.daemon_process import running, short_directory
from support.raw_stubs import Stubs, condition, condition_of, connected, produced

pytestmark = pytest.mark.asyncio(loop_scope="module")  # one daemon for all

PARTITIONS = 4
PRODUCER = os.urandom(16)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def endpoint() -> AsyncIterator[str]:
    with short_directory() as directory:
        async with running("--data-dir", str(directory)) as daemon:
            yield daemon.endpoint
            assert await daemon.stop() == 0
            assert "Traceback" not in daemon.said


class Topic:
    """A topic of its own for each test, with a producer that keeps count."""

    def __init__(self, stubs: Stubs, description: topics_pb2.Topic) -> None:
        self.stubs = stubs
        self.name = description.name
        self.epoch = description.topic_epoch
        self.sequence = 0
        self.good: list[bytes] = []

    def frame(
        self,
        payload: bytes = b"x",
        *,
        subject: str | None = None,
        key: bytes | None = None,
        records: int = 1,
        sequence: int | None = None,
    ) -> bytes:
        columns = Columns(
            payloads=[payload] * records,
            keys=[key] * records,
            subjects=subject or self.name,
            headers=None,
            timestamps_us=1,
        )
        sequence = self.sequence if sequence is None else sequence
        return build_frame(columns, partition=0, producer_id=PRODUCER, sequence=sequence)

    async def produce_good(self) -> None:
        payload = b"good %d" % len(self.good)
        answers = await produced(self.stubs, self.name, self.epoch, self.frame(payload))
        assert [ack.sequence for ack in answers.acks] == [self.sequence]
        self.good.append(payload)
        self.sequence += 1

    async def refusal(self, *frames: bytes, epoch: int | None = None) -> DssError:
        answers = await produced(
            self.stubs, self.name, self.epoch if epoch is None else epoch, *frames
        )
        assert not answers.acks
        assert len(answers.refusals) == len(frames)
        return condition(answers.refusals[0].error)

    async def records(self) -> list[bytes]:
        found: list[bytes] = []
        stream = f"{self.name}/0/0"
        async for reply in self.stubs.log.Read(log_pb2.ReadRequest(stream=stream)):
            if reply.frames:
                found += decode(reply.frames).payloads
        return found


@pytest_asyncio.fixture(loop_scope="module")
async def stubs(endpoint: str) -> AsyncIterator[Stubs]:
    async with connected(endpoint) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def topic(stubs: Stubs, request: pytest.FixtureRequest) -> AsyncIterator[Topic]:
    name = "t" + os.urandom(6).hex()
    made = Topic(stubs, await create(stubs, name))
    await made.produce_good()
    yield made
    await made.produce_good()
    assert await made.records() == made.good


async def create(
    stubs: Stubs, name: str, *patterns: str, if_not_exists: bool = False
) -> topics_pb2.Topic:
    request = topics_pb2.CreateTopicRequest(
        name=name, partitions=PARTITIONS, patterns=patterns, if_not_exists=if_not_exists
    )
    return await stubs.topics.Create(request)


async def ended(call: Awaitable[object], code: str) -> DssError:
    with pytest.raises(grpc.aio.AioRpcError) as aborted:
        await call
    error = condition_of(aborted.value)
    assert error.code == code, error
    return error


async def drained(call: AsyncIterable[object]) -> None:
    async for _ in call:
        pass


def key_for(partition: int) -> bytes:
    return next(
        key
        for key in (b"%d" % at for at in range(1_000))
        if partition_of(Router.BLOCK, key_hash(key), PARTITIONS, 1) == partition
    )


# Frames


async def test_an_unknown_topic_is_refused_frame_by_frame(topic: Topic) -> None:
    answers = await produced(topic.stubs, "nowhere", 1, topic.frame(), topic.frame())
    assert [condition(item.error).code for item in answers.refusals] == ["DSS2001", "DSS2001"]


async def test_a_call_that_names_no_topic_is_refused(topic: Topic) -> None:
    answers = await produced(topic.stubs, "", 1, topic.frame())
    assert condition(answers.refusals[0].error).code == "DSS1010"


async def test_a_subject_outside_the_patterns_is_refused(topic: Topic) -> None:
    error = await topic.refusal(topic.frame(subject="elsewhere/x"))
    assert (error.code, error.fields["subject"]) == ("DSS1004", "elsewhere/x")
    again = await topic.refusal(topic.frame(subject="elsewhere/x"))
    assert again.code == "DSS1004"


async def test_a_wrong_topic_epoch_is_refused_with_the_right_one(topic: Topic) -> None:
    error = await topic.refusal(topic.frame(), epoch=topic.epoch + 1)
    assert (error.code, error.fields["current"]) == ("DSS2009", str(topic.epoch))


@pytest.mark.parametrize("records", [1, 100])
async def test_a_misrouted_frame_is_refused(topic: Topic, records: int) -> None:
    error = await topic.refusal(topic.frame(key=key_for(2), records=records))
    assert (error.code, error.fields["expected"]) == ("DSS1009", "2")


async def test_a_partition_that_does_not_exist_is_refused(topic: Topic) -> None:
    columns = Columns([b"x"], None, topic.name, None, 1)
    frame = build_frame(columns, partition=PARTITIONS, producer_id=PRODUCER, sequence=0)
    assert (await topic.refusal(frame)).code == "DSS2011"


@pytest.mark.parametrize("records", [1, 100])
async def test_a_flipped_bit_is_refused(topic: Topic, records: int) -> None:
    frame = bytearray(topic.frame(records=records))
    frame[-1] ^= 1
    assert (await topic.refusal(bytes(frame))).code == "DSS1008"


@pytest.mark.parametrize("length", [0, 1, 83, 84, 90])
async def test_a_frame_that_is_cut_is_refused(topic: Topic, length: int) -> None:
    assert (await topic.refusal(topic.frame()[:length])).code == "DSS1008"


async def test_a_record_over_the_limit_is_refused(topic: Topic) -> None:
    assert (await topic.refusal(rows_frame(topic.name, RECORD_BYTES_MAX + 1))).code == "DSS1006"


@pytest.mark.parametrize("records", [1, 100])
async def test_a_header_of_the_daemons_own_is_refused(topic: Topic, records: int) -> None:
    headers = [*[None] * (records - 1), [("dss-origin", b"t/0/0@1"), ("dss-lane", b"")]]
    columns = Columns([b"x"] * records, None, topic.name, headers, 1)
    error = await topic.refusal(
        build_frame(columns, partition=0, producer_id=PRODUCER, sequence=1, limits=ENTRIES)
    )
    assert (error.code, error.fields) == ("DSS2121", {"header": "dss-lane"})


async def test_a_frame_over_the_limit_is_refused(topic: Topic) -> None:
    assert (await topic.refusal(bytes(FRAME_BYTES_MAX + 1))).code == "DSS1007"


async def test_a_gap_in_the_sequence_is_refused(topic: Topic) -> None:
    error = await topic.refusal(topic.frame(sequence=topic.sequence + 1))
    assert (error.code, error.fields["stream"]) == ("DSS2016", f"{topic.name}/0/0")


async def test_a_bad_frame_does_not_harm_its_neighbours(topic: Topic) -> None:
    frames = [topic.frame(b"before"), b"garbage", topic.frame(b"after", sequence=2)]
    answers = await produced(topic.stubs, topic.name, topic.epoch, *frames)
    assert [ack.sequence for ack in answers.acks] == [1, 2]
    assert [condition(item.error).code for item in answers.refusals] == ["DSS1008"]
    topic.good += [b"before", b"after"]
    topic.sequence = 3


async def test_a_message_that_is_too_large_ends_the_call_only(topic: Topic) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as aborted:
        await produced(topic.stubs, topic.name, topic.epoch, bytes(FRAME_BYTES_MAX * 2))
    assert aborted.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED


def rows_frame(subject: str, payload_bytes: int) -> bytes:
    table = struct.pack("<H", len(subject)) + subject.encode()
    head = struct.pack("<IqHHH", payload_bytes, 1, 0, 0xFFFF, 0)
    return assemble(
        LAYOUT_ROWS,
        records=1,
        partition=0,
        subjects=1,
        producer_id=PRODUCER,
        sequence=1,
        parts=[table, head, bytes(payload_bytes)],
    )


# Plain records


@pytest.mark.parametrize(
    ("record", "code"),
    [
        (types_pb2.Record(subject="elsewhere", payload=b"x"), "DSS1004"),
        (types_pb2.Record(subject="a/+/b", payload=b"x"), "DSS1005"),
        (types_pb2.Record(payload=bytes(RECORD_BYTES_MAX + 1)), "DSS1006"),
        (types_pb2.Record(headers=[types_pb2.Header(name="dss-due", value=b"0")]), "DSS2121"),
    ],
)
async def test_a_bad_plain_record_stops_its_whole_call(
    topic: Topic, record: types_pb2.Record, code: str
) -> None:
    records = [types_pb2.Record(payload=b"innocent", key=key_for(0)), record]
    await ended(
        topic.stubs.log.Publish(log_pb2.PublishRequest(topic=topic.name, records=records)), code
    )


async def test_publishing_to_an_unknown_topic_is_refused(topic: Topic) -> None:
    await ended(topic.stubs.log.Publish(log_pb2.PublishRequest(topic="nowhere")), "DSS2001")


async def test_too_many_plain_records_are_refused(topic: Topic) -> None:
    records = [types_pb2.Record(payload=b"x")] * (PUBLISH_RECORDS_MAX + 1)
    request = log_pb2.PublishRequest(topic=topic.name, records=records)
    await ended(topic.stubs.log.Publish(request), "DSS1010")


# Topics


@pytest.mark.parametrize("name", ["", "a/b", "a b", "ä", "x" * 256, "a\n"])
async def test_an_illegal_name_is_refused(stubs: Stubs, name: str) -> None:
    await ended(create(stubs, name), "DSS1001")


@pytest.mark.parametrize("pattern", ["a/#/b", "a+", "#a", ""])
async def test_an_illegal_pattern_is_refused(stubs: Stubs, pattern: str) -> None:
    await ended(create(stubs, "fine", pattern), "DSS1002")


async def test_overlapping_topics_are_refused(topic: Topic) -> None:
    error = await ended(create(topic.stubs, "rival", f"{topic.name}/+/x"), "DSS2003")
    assert error.fields["other"] == topic.name


async def test_a_topic_that_exists_is_refused_unless_that_is_fine(topic: Topic) -> None:
    await ended(create(topic.stubs, topic.name), "DSS2002")
    same = await create(topic.stubs, topic.name, if_not_exists=True)
    assert same.topic_epoch == topic.epoch


@pytest.mark.parametrize(
    "wrong",
    [{"partitions": 0}, {"partitions": 5_000}, {"factor": 3}, {"router": 9}, {"durability": 9}],
)
async def test_a_value_out_of_bounds_is_refused(stubs: Stubs, wrong: dict[str, Any]) -> None:
    fields: dict[str, Any] = {"name": "fine", "partitions": PARTITIONS, **wrong}
    await ended(stubs.topics.Create(topics_pb2.CreateTopicRequest(**fields)), "DSS1010")


async def test_describing_or_removing_an_unknown_topic_is_refused(stubs: Stubs) -> None:
    await ended(stubs.topics.Describe(topics_pb2.DescribeTopicRequest(name="no")), "DSS2001")
    await ended(stubs.topics.Remove(topics_pb2.RemoveTopicRequest(name="no")), "DSS2001")
    gone = topics_pb2.RemoveTopicRequest(name="no", if_exists=True)
    assert not (await stubs.topics.Remove(gone)).removed


async def test_what_names_an_internal_topic_is_told_what_to_do_instead(topic: Topic) -> None:
    stubs, name = topic.stubs, internal_name(RETRY, 5, 3)
    record = types_pb2.Record(payload=b"x")
    calls: list[Awaitable[object]] = [
        stubs.topics.Create(topics_pb2.CreateTopicRequest(name=name, partitions=1)),
        stubs.topics.Describe(topics_pb2.DescribeTopicRequest(name=name)),
        stubs.topics.Locate(topics_pb2.LocateRequest(name=name)),
        stubs.topics.Remove(topics_pb2.RemoveTopicRequest(name=name, if_exists=True)),
        stubs.log.Publish(log_pb2.PublishRequest(topic=name, records=[record])),
        stubs.log.Runs(log_pb2.RunsRequest(stream=f"{name}/0/0")),
        drained(stubs.log.Read(log_pb2.ReadRequest(stream=f"{name}/0/0"))),
        drained(stubs.log.Read(log_pb2.ReadRequest(filter=f"{name}/#"))),
        stubs.groups.Create(groups_pb2.CreateGroupRequest(filter=f"$share/g/{name}/#")),
    ]
    for call in calls:
        error = await ended(call, "DSS2120")
        assert error.fields == {"topic": name}
        assert "dssctl dlq ls GROUP" in error.hint
    answers = await produced(stubs, name, 1, topic.frame())
    assert [condition(item.error).code for item in answers.refusals] == ["DSS2120"]


# Reads


@pytest.mark.parametrize(
    ("request_fields", "code"),
    [
        ({"filter": "a/#/b"}, "DSS1002"),
        ({"filter": ""}, "DSS1002"),
        ({"stream": "nowhere/0/0"}, "DSS2011"),
        ({"stream": "nowhere"}, "DSS1001"),
        ({"filter": "#", "start": types_pb2.Start()}, "DSS1010"),
        ({"filter": "#", "start": types_pb2.Start(time_us=-1)}, "DSS1010"),
        ({"filter": "#", "end_time_us": -1}, "DSS1010"),
    ],
)
async def test_a_bad_read_is_refused(
    topic: Topic, request_fields: dict[str, Any], code: str
) -> None:
    await ended(drained(topic.stubs.log.Read(log_pb2.ReadRequest(**request_fields))), code)


async def test_an_offset_needs_a_single_stream_and_must_lie_in_it(topic: Topic) -> None:
    start = types_pb2.Start(offset=7)
    several = log_pb2.ReadRequest(filter=topic.name, start=start)
    await ended(drained(topic.stubs.log.Read(several)), "DSS1010")
    outside = log_pb2.ReadRequest(stream=f"{topic.name}/0/0", start=start)
    error = await ended(drained(topic.stubs.log.Read(outside)), "DSS2015")
    assert (error.fields["start"], error.fields["end"]) == ("0", "1")


# Groups


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("$queue/orders", "DSS1003"),
        ("$share/a b/orders", "DSS1001"),
        ("$share/g/a/#/b", "DSS1002"),
        ("orders/#", "DSS1010"),
    ],
)
async def test_a_group_with_a_bad_filter_is_refused(stubs: Stubs, text: str, code: str) -> None:
    await ended(stubs.groups.Create(groups_pb2.CreateGroupRequest(filter=text)), code)


async def test_an_unknown_group_is_refused(stubs: Stubs) -> None:
    await ended(stubs.groups.Describe(groups_pb2.DescribeGroupRequest(group="no")), "DSS2004")
    await ended(stubs.groups.Remove(groups_pb2.RemoveGroupRequest(group="no")), "DSS2004")
