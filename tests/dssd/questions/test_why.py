"""Where a record stands for a group, asked of real groups, sessions and a real log."""

import asyncio
from dataclasses import replace

import pytest

from dss_core.answers import Reason
from dss_core.errors import (
    GroupNotFound,
    KeyNotFound,
    OffsetNotWritten,
    StreamNotFound,
    StreamNotRead,
    TopicNotFound,
)
from dss_core.ids import StreamId
from dss_core.progress import Progress
from dss_core.routing import key_hash, partition_of
from dss_sim.played_groups import LOOK_AGAIN_S, PATIENCE_S
from dss_sim.played_sessions import Attached, Hall
from dssd.machines.start_point import Earliest
from dssd.questions.answers import WhyAnswer
from dssd.questions.questions import Questions
from dssd.questions.reasons import RecordAsked, done
from dssd.questions.why import KEY_RECORDS_MAX, KeyAsked

GROUP = "$share/g/orders/eu"
NAME = "g"
STREAM = "orders/0/0"


async def reason(questions: Questions, offset: int, stream: str = STREAM) -> Reason:
    (found,) = (await questions.why.of_offset(NAME, stream, offset)).records
    return found.reason


async def reason_is(questions: Questions, offset: int, code: str, stream: str = STREAM) -> Reason:
    """The reason, once it is this one: leaders hear of settlements a little later."""
    async with asyncio.timeout(PATIENCE_S):
        while (found := await reason(questions, offset, stream)).code != code:  # noqa: ASYNC110 - it is told to nobody
            await asyncio.sleep(LOOK_AGAIN_S)
    return found


async def orders(hall: Hall, *frames: int, group: str = GROUP) -> StreamId:
    """A topic of one stream with such frames, and a group that begins with the first."""
    (stream,) = await hall.plant.topic("orders", 1)
    for records in frames:
        await hall.plant.publish(stream, records, "orders/eu")
    await hall.plant.group(group, Earliest())
    return stream


async def reading(client: Attached, records: int) -> int:
    """The grant of the group, once so many records are handed out."""
    await client.subscribe(GROUP)
    return (await client.records(records))[0][0]


async def test_a_record_is_followed_from_nobody_over_a_client_to_its_ack(
    hall: Hall, questions: Questions
) -> None:
    await orders(hall, 5)
    waiting = await reason(questions, 3)
    assert waiting.code == "no-members"
    assert waiting.command == "dssctl consume orders/eu --group g"
    async with hall.attached("ann") as ann:
        grant = await reading(ann, 5)
        found = await reason_is(questions, 3, "handed-out")
        assert (found.client_id, found.attempt) == ("ann", 1)
        assert found.since_ms is not None
        assert found.until_ms is not None
        group = hall.plant.groups.find(NAME)
        assert found.until_ms - found.since_ms == group.ack_wait_ms
        assert found.command == f"dssctl records skip g@orders/eu {STREAM} 3"
        await ann.nak(grant, 3, 4, 60_000)
        resting = await reason_is(questions, 3, "resting")
        assert "comes again in" in resting.sentence
        await ann.ack(grant, 0, 3)
        assert (await reason_is(questions, 0, "acked")).command == ""
    # Nobody has it now, and its rest is durable.
    assert (await reason_is(questions, 3, "no-members")).client_id == ""


async def test_a_record_that_the_filter_rejects_is_told_before_and_after_it_is_passed(
    hall: Hall, questions: Questions
) -> None:
    stream = await orders(hall, 1)
    await hall.plant.publish(stream, 1, "orders/us")
    await hall.plant.publish(stream, 1, "orders/eu")
    before = await questions.why.of_offset(NAME, STREAM, 1)
    assert before.records[0].reason.code == "filtered"
    assert before.records[0].record is not None
    assert (before.records[0].record.subject, before.records[0].ahead) == ("orders/us", 1)
    async with hall.attached() as client:
        grant = await reading(client, 2)
        await client.ack(grant, 0, 3)
        await reason_is(questions, 2, "acked")
    assert (await reason(questions, 1)).code == "filtered"


async def test_what_retention_took_is_gone_whether_or_not_it_was_done(
    hall: Hall, questions: Questions
) -> None:
    stream = await orders(hall, 2, 2, 2)
    async with hall.attached() as client:
        grant = await reading(client, 6)
        await client.ack(grant, 0, 1)
        await reason_is(questions, 0, "acked")
    await hall.plant.log.trim(stream, 4)
    assert hall.plant.log.bounds(stream).start == 4
    assert (await reason(questions, 0)).code == "done"
    gone = await reason(questions, 1)
    assert (gone.code, gone.command) == ("gone", "dssctl topics describe orders")


async def test_a_rewind_is_not_told_as_what_passed_a_record_over(
    hall: Hall, questions: Questions
) -> None:
    await orders(hall, 3)
    group = hall.plant.groups.find(NAME)
    view = replace(
        (await hall.plant.registry.survey(group)).streams[0].view,
        progress=Progress(2),
        cursor_generation=7,
    )
    asked = RecordAsked(group, STREAM, 1)
    rewound = done(asked, view, "kept", 0, "offsets.rewind").sentence
    assert rewound.endswith("an operator moved the group past it before operation 7, a rewind.")
    skipped = done(asked, view, "kept", 0, "offsets.skip").sentence
    assert skipped.endswith("moved the group past it: operation 7 was the last to move it.")


async def test_what_lies_before_a_groups_start_was_never_for_it(
    hall: Hall, questions: Questions
) -> None:
    (stream,) = await hall.plant.topic("orders", 1)
    await hall.plant.publish(stream, 3, "orders/eu")
    await hall.plant.group(GROUP)
    found = await reason(questions, 2)
    assert found.code == "before-start"
    assert found.command == f"dssctl offsets rewind g@orders/eu --stream {STREAM} --to =2"


async def test_a_client_without_credit_is_named_with_what_it_holds(
    hall: Hall, questions: Questions
) -> None:
    await orders(hall, 5, 5, 5)
    async with hall.attached("ann", credit_records=5) as ann:
        await reading(ann, 5)
        found = await reason_is(questions, 14, "no-credit")
        assert found.client_id == "ann"
        assert "5 of g in flight, of 5 records" in found.sentence
        assert found.command.endswith(f"--stream {STREAM} --offset 0")


async def test_a_paused_group_is_the_reason_for_what_is_not_out(
    hall: Hall, questions: Questions
) -> None:
    await orders(hall, 5)
    group = hall.plant.groups.find(NAME)
    hall.plant.groups.note_changed(replace(group, paused=True, paused_until_ms=0))
    found = await reason(questions, 1)
    assert (found.code, found.command) == ("paused", "dssctl groups resume g@orders/eu")
    assert "until 1970" in found.sentence


async def test_what_is_not_there_is_refused_with_the_next_command(
    hall: Hall, questions: Questions
) -> None:
    await orders(hall, 5)
    await hall.plant.topic("others", 1)
    with pytest.raises(OffsetNotWritten) as beyond:
        await reason(questions, 5)
    assert beyond.value.hint_text.endswith(
        f"dssctl groups why g@orders/eu --stream {STREAM} --offset 4"
    )
    with pytest.raises(OffsetNotWritten) as empty:
        await questions.why.of_offset(NAME, "orders/0/0", 1 << 62)
    assert "it ends at 5" in empty.value.message
    with pytest.raises(StreamNotRead):
        await reason(questions, 0, "others/0/0")
    with pytest.raises(StreamNotFound):
        await reason(questions, 0, "orders/0/7")
    with pytest.raises(StreamNotFound):
        await reason(questions, 0, "none/0/0")
    with pytest.raises(GroupNotFound):
        await questions.why.of_offset("none", STREAM, 0)


# Keys


async def keyed(hall: Hall, key: bytes, *batches: list[bytes | None]) -> str:
    """A topic of four streams with these keys where the key belongs; the stream's name."""
    streams = await hall.plant.topic("orders", 4)
    topic = hall.plant.catalogue.get("orders")
    partition = partition_of(topic.router, key_hash(key), 4, 1)
    for keys in batches:
        await hall.plant.publish(streams[partition], len(keys), "orders/eu", keys)
    await hall.plant.group(GROUP, Earliest())
    return f"orders/0/{partition}"


async def ask_key(questions: Questions, key: bytes, **more: object) -> WhyAnswer:
    return await questions.why.of_key(NAME, KeyAsked(key, **more))  # type: ignore[arg-type] # of KeyAsked


async def test_the_open_records_of_a_key_come_the_oldest_first(
    hall: Hall, questions: Questions
) -> None:
    stream = await keyed(hall, b"k", [b"k", b"kk", None], [b"other"], [b"k", b"k"])
    answer = await ask_key(questions, b"k")
    assert [(str(each.stream), each.offset) for each in answer.records] == [
        (stream, 0),
        (stream, 4),
        (stream, 5),
    ]
    assert {each.reason.code for each in answer.records} == {"no-members"}
    assert {each.record and each.record.key for each in answer.records} == {b"k"}
    assert answer.next_command == ""


async def test_where_no_record_of_a_key_is_open_the_newest_done_one_is_told(
    hall: Hall, questions: Questions
) -> None:
    stream = await keyed(hall, b"k", [b"k", b"k", b"other"])
    async with hall.attached() as client:
        grant = await reading(client, 3)
        await client.ack(grant, 0, 3)
        await reason_is(questions, 1, "acked", stream)
    answer = await ask_key(questions, b"k")
    assert [(each.offset, each.reason.code) for each in answer.records] == [(1, "acked")]


async def test_a_key_that_nobody_sent_is_refused(hall: Hall, questions: Questions) -> None:
    await keyed(hall, b"k", [b"kk", b"other"])
    with pytest.raises(KeyNotFound) as refused:
        await ask_key(questions, b"k")
    assert refused.value.fields == {"group": NAME, "key": "k"}


async def test_a_look_for_a_key_ends_at_its_bound_and_says_how_to_go_on(
    hall: Hall, questions: Questions
) -> None:
    batches: list[list[bytes | None]] = [[b"k"] * (KEY_RECORDS_MAX + 2), [b"k"]]
    stream = await keyed(hall, b"k", *batches)
    answer = await ask_key(questions, b"k")
    assert [each.offset for each in answer.records] == list(range(KEY_RECORDS_MAX))
    assert answer.next_command.endswith(f"--key k --stream {stream} --offset {KEY_RECORDS_MAX}")
    rest = await ask_key(questions, b"k", stream=stream, start=KEY_RECORDS_MAX)
    assert [each.offset for each in rest.records] == [10, 11, 12]
    assert rest.next_command == ""


async def test_a_key_is_looked_for_in_the_topic_that_is_named_alone(
    hall: Hall, questions: Questions
) -> None:
    await keyed(hall, b"k", [b"k"])
    await hall.plant.topic("others", 1)
    assert len((await ask_key(questions, b"k", topic="orders")).records) == 1
    with pytest.raises(StreamNotRead):
        await ask_key(questions, b"k", topic="others")
    with pytest.raises(TopicNotFound):
        await ask_key(questions, b"k", topic="none")
