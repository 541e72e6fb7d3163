"""No record is passed in silence: what users see of failed reads, damage, poison and delays.

Real daemons, real files, real members that die.
"""

import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import dss_client
from dss_client import Client, Event
from dss_client.group_values import Group
from support.daemon_process import running
from support.proof_share import only_in_proof
from support.segment_bytes import flip, frame_places
from support.started_program import StartedProgram, started

pytestmark = pytest.mark.slow("a daemon begins several lives")

PATIENCE_S, POLL_S = 30.0, 0.02
PROGRAMS = Path(__file__).parent / "programs"
UNREADABLE = (str(PROGRAMS / "broken_daemon.py"), "unreadable")
REAL = ("-m", "dssd")
FILTER = "$share/g/t/#"
PATIENCE_S = 60.0
FRAMES, RECORDS_A_FRAME = 4, 100
ALL = range(FRAMES * RECORDS_A_FRAME)
DAMAGED_FRAME = 2
DAMAGED = range(DAMAGED_FRAME * RECORDS_A_FRAME, (DAMAGED_FRAME + 1) * RECORDS_A_FRAME)
POISON = 150
DEATHS_MAX = 6
"""The first deaths find the record, the last ones show that the others come all the same."""
DELAY_S = 8.0
"""Longer than a restarted daemon keeps streams for those that had them."""


@asynccontextmanager
async def served(directory: Path, program: tuple[str, ...] = REAL) -> AsyncIterator[Client]:
    """A daemon on the directory, and a client of it; a clean stop at the end."""
    arguments = ("--data-dir", str(directory / "d"), "--listen", f"unix:{directory}/s")
    async with asyncio.timeout(PATIENCE_S), running(*arguments, program=program) as daemon:
        async with dss_client.connect(endpoint=daemon.endpoint) as client:
            yield client
        assert await daemon.stop() == 0


async def published(directory: Path, *, on_damage: str | None = None) -> None:
    """A topic of some frames, a group of it from its beginning, and a daemon that has stopped."""
    async with served(directory) as client:
        await client.topics.create("t", partitions=1)
        await client.groups.create(FILTER, start="earliest", on_damage=on_damage)
        async with client.producer("t") as producer:
            for frame in range(FRAMES):
                first = frame * RECORDS_A_FRAME
                payloads = [b"%d" % (first + at) for at in range(RECORDS_A_FRAME)]
                await producer.send_columns(payloads=payloads)


async def take(client: Client, wanted: list[int]) -> None:
    """Take exactly these offsets, in order, and acknowledge them."""
    taken: list[int] = []
    async with client.subscribe(FILTER) as subscription:
        async for record in subscription:
            taken.append(record.offset)
            await record.ack(sync=len(taken) == len(wanted))
            if len(taken) == len(wanted):
                break
    assert taken == wanted


async def told(client: Client, code: str) -> Event:
    """The first event of a code, as soon as there is one."""
    async for event in client.events.watch(after=0):
        if event.code == code:
            return event
    raise AssertionError("the watch ended")


async def stalled(client: Client) -> Group:
    """The group, once its leader has heard that it is stalled."""
    async with asyncio.timeout(PATIENCE_S):
        # What a session reports to a leader has no event here.
        while (group := (await client.groups.describe("g")).group).state != "stalled":  # noqa: ASYNC110
            await asyncio.sleep(POLL_S)
    return group


async def test_reads_that_fail_for_a_while_pass_nothing(directory: Path) -> None:
    await published(directory)
    broken = directory / "d" / "unreadable"
    broken.touch()
    async with served(directory, UNREADABLE) as client, asyncio.TaskGroup() as tasks:
        taking = tasks.create_task(take(client, list(ALL)))
        event = await told(client, "stream.unreadable")
        assert (event.subject, event.fields["reason"]) == ("t/0/0", "Input/output error")
        group = await stalled(client)
        assert group.lag == len(ALL)
        assert group.state_reason == "t/0/0 cannot be read behind 0; the read is tried again"
        broken.unlink()
        await taking
        await told(client, "stream.readable")
        description = await client.groups.describe("g")
        assert (description.group.lag, description.group.fates.acked) == (0, len(ALL))
        assert description.group.fates.damaged == 0


def spoil_a_frame(directory: Path) -> None:
    """Turn one bit of one frame round."""
    (segment,) = (directory / "d" / "log").glob("*.seg")
    flip(segment, frame_places(segment)[DAMAGED_FRAME + 1] - 1)


async def test_one_flipped_bit_is_told_and_counted_where_a_group_goes_on_behind_it(
    directory: Path,
) -> None:
    await published(directory)
    spoil_a_frame(directory)
    async with served(directory) as client:
        await take(client, [offset for offset in ALL if offset not in DAMAGED])
        event = await told(client, "records.passed")
        assert (event.subject, event.severity) == ("t/0/0", "error")
        assert event.sentence == (
            "Group g@t/# goes on behind 100 damaged records, offsets 200 to 299."
        )
    # It is in the rows: nobody is a member of the group now.
    async with served(directory) as client:
        description = await client.groups.describe("g")
        assert description.group.fates.damaged == len(DAMAGED)
        assert description.group.fates.acked == len(ALL) - len(DAMAGED)
        [grant] = description.grants
        assert grant.damaged == ((DAMAGED.start, DAMAGED.stop),)
        assert (await client.daemon.status()).errors_in_a_day == 1
        assert [each.code for each in (await client.events.list()).events].count(
            "records.passed"
        ) == 1


async def test_a_group_may_stall_at_damage_instead(directory: Path) -> None:
    await published(directory, on_damage="stall")
    spoil_a_frame(directory)
    async with served(directory) as client, asyncio.TaskGroup() as tasks:
        taking = tasks.create_task(take(client, list(ALL)))
        await told(client, "stream.damaged")
        while not (grant := (await client.groups.describe("g")).grants[0]).stall:
            pass
        assert "damaged records" in grant.stall
        assert grant.damaged == ()
        group = (await client.groups.describe("g")).group
        assert (group.on_damage, group.fates.damaged) == ("stall", 0)
        taking.cancel()


@asynccontextmanager
async def printing(directory: Path, *options: str) -> AsyncIterator[StartedProgram]:
    """A ``dssctl`` that prints the topic as it grows."""
    process = await started(
        *("-m", "dssctl", "--endpoint", f"unix:{directory}/s", "consume", "t/#", *options),
        pipes=["stdout", "stderr"],
        environment={**os.environ, "NO_COLOR": "1"},
    )
    try:
        yield process
    finally:
        process.kill()
        await process.wait()


PASSED_BY = "DSS4001: Stream t/0/0 is damaged: offsets 200 to 299 cannot be read."


async def test_a_read_that_follows_tells_of_damage_while_it_goes_on(directory: Path) -> None:
    await published(directory)
    spoil_a_frame(directory)
    async with served(directory), printing(directory, "-o", "table") as process:
        assert process.stderr is not None
        assert await process.stderr.readline() == f"note: {PASSED_BY}\n".encode()
        process.send_signal(signal.SIGINT)
        printed, told = await process.communicate()
        assert (process.returncode, told) == (130, b"")
        assert len(printed.splitlines()) == 1 + len(ALL) - len(DAMAGED)


async def test_a_read_of_a_number_tells_of_damage_before_it_has_as_many(directory: Path) -> None:
    await published(directory)
    spoil_a_frame(directory)
    number = ("-n", str(len(ALL)), "-o", "jsonl")
    async with served(directory) as client, printing(directory, *number) as process:
        assert process.stderr is not None
        note = json.loads(await process.stderr.readline())
        assert (note["kind"], note["code"]) == ("Note", "DSS4001")
        assert note["fields"] == {"stream": "t/0/0", "offset": "200", "last": "299"}
        async with client.producer("t") as producer:
            await producer.send_columns(payloads=[b"later"] * len(DAMAGED))
        printed, told = await process.communicate()
        offsets = [json.loads(line)["offset"] for line in printed.splitlines()]
        whole = range(len(ALL) + len(DAMAGED))
        assert offsets == [offset for offset in whole if offset not in DAMAGED]
        assert process.returncode == 1
        assert json.loads(told)["code"] == "DSS4001"


@only_in_proof
async def test_a_record_that_kills_its_consumer_does_not_keep_the_others(directory: Path) -> None:
    await published(directory)
    attempts: list[int] = []
    async with served(directory) as client:
        watched = asyncio.create_task(all_but_one_acknowledged(client))
        while not watched.done():
            attempts += await life_of_a_member(directory, watched)
            assert len(attempts) <= DEATHS_MAX, attempts
        await watched
    assert attempts == sorted(set(attempts)), "each death counts"
    assert attempts[0] == 1


async def life_of_a_member(directory: Path, over: "asyncio.Task[None]") -> list[int]:
    """One member, until it dies or nothing is left for it; the attempt that it died of."""
    program = (str(PROGRAMS / "doomed_member.py"), f"unix:{directory}/s")
    member = await started(*program, "mortal", FILTER, str(POISON), pipes=["stdout"])
    dying = asyncio.create_task(member.communicate())
    await asyncio.wait((dying, over), return_when=asyncio.FIRST_COMPLETED)
    if not dying.done():
        member.kill()
    said, _ = await dying
    lines = [json.loads(line) for line in said.splitlines()]
    return [line["attempt"] for line in lines if line["event"] == "doomed"]


async def all_but_one_acknowledged(client: Client) -> None:
    """Look at the group until only the poison is left."""
    # What another process sees has no event here.
    while (await client.groups.describe("g")).group.fates.acked < len(ALL) - 1:  # noqa: ASYNC110
        await asyncio.sleep(0.05)


@only_in_proof
async def test_a_delay_that_a_user_chose_outlives_members_and_daemons(directory: Path) -> None:
    await published(directory)
    async with served(directory) as client, client.subscribe(FILTER) as subscription:
        async for record in subscription:
            if record.offset == 0:
                await record.nak(delay=DELAY_S)
                refused_at = time.monotonic()
            else:
                await record.ack(sync=record.offset == ALL[-1])
            if record.offset == ALL[-1]:
                break
    async with served(directory) as client, client.subscribe(FILTER) as subscription:
        record = await anext(aiter(subscription))
        assert (record.offset, record.redelivered, record.attempt) == (0, True, 2)
        assert time.monotonic() >= refused_at + DELAY_S
        await record.ack(sync=True)
        assert (await client.groups.describe("g")).group.lag == 0
