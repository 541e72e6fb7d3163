"""What the order of keys costs: a group of which nothing fails, others beside keys that fail, and
others in a lane where many keys wait."""

import asyncio
from dataclasses import dataclass

import lane_steps
from processes import Daemon, run_program, running_daemon
from processor_time import own_s
from results import Row
from workload import PARTITIONS, PAYLOAD, TOPIC

import dss_client

BAD = b"bad-"
"""Keys that begin so fail, where anything does."""
BAD_EVERY = 100
"""One key in so many, where latency is measured."""
ALONE = "alone"
"""A topic of one partition, so of one lane."""
WAYS = {"batch": 6_000_000, "record": 3_000_000, "fetch": 2_000_000, "run": 150_000}
"""How many records are consumed each way."""
FOLLOWERS = 20_000
BESIDE = 300_000
WAITING = 10_000
FRAMES = {"arrow": (1_000, 3_000_000), "rows": (20, 300_000)}
"""Records a frame, and records in all, by the layout that such frames have."""
SENT_AT_ONCE = 64
BACK_OFF_S = [3_600.0]
"""Longer than a round: what failed waits until it ends."""
BACK_OFF_USUAL_S = [1.0, 5.0, 30.0, 300.0]
PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True)
class Taken:
    """A group was consumed."""

    rate: float
    """Millions of records a second."""
    cpu_us: float
    """Of a record: of the daemon and the consumer."""


async def declare(
    daemon: Daemon,
    name: str,
    topic: str = TOPIC,
    *,
    start: str = "earliest",
    backoff: list[float] = BACK_OFF_S,
) -> None:
    """An ordered group."""
    async with dss_client.connect(endpoint=daemon.endpoint) as client:
        await client.groups.create(
            f"$share/{name}/{topic}/#", start=start, max_deliver=5, backoff=backoff, ordered=True
        )


async def send(daemon: Daemon, keys: list[bytes], frame_records: int) -> None:
    """Records of these keys, in order, in frames of so many."""
    async with (
        dss_client.connect(endpoint=daemon.endpoint) as client,
        client.producer(ALONE) as producer,
    ):
        frames = [keys[at : at + frame_records] for at in range(0, len(keys), frame_records)]
        for at in range(0, len(frames), SENT_AT_ONCE):
            async with asyncio.TaskGroup() as tasks:
                for frame in frames[at : at + SENT_AT_ONCE]:
                    tasks.create_task(
                        producer.send_columns(payloads=[PAYLOAD] * len(frame), keys=frame),
                        name="frame",
                    )


async def create(daemon: Daemon, topic: str, partitions: int) -> None:
    """A topic, empty."""
    async with dss_client.connect(endpoint=daemon.endpoint) as client:
        await client.topics.create(topic, partitions=partitions)


async def fail_all(daemon: Daemon, group: str, records: int) -> None:
    """Refuse what comes, until so many records wait in the retry queue."""

    async def refuse(subscription: dss_client.Subscription) -> None:
        async for batch in subscription.batches():
            await batch.nak()

    async with (
        asyncio.timeout(PATIENCE_S),
        dss_client.connect(endpoint=daemon.endpoint) as client,
        client.subscribe(f"$share/{group}/{ALONE}/#") as subscription,
        asyncio.TaskGroup() as tasks,
    ):
        refusing = tasks.create_task(refuse(subscription), name="refuse")
        await retrying(client, group, records)
        refusing.cancel()


async def retrying(client: dss_client.Client, group: str, records: int) -> None:
    """Wait until so many wait in the retry queue."""
    while True:
        if (await client.groups.describe(group)).group.retrying >= records:
            return
        await asyncio.sleep(0.02)


async def consumed(daemon: Daemon, way: str, group: str) -> Taken:
    """A fresh group takes records this way."""
    async with dss_client.connect(endpoint=daemon.endpoint) as client:
        pid = (await client.daemon.status()).pid
    spent_s = own_s(pid)
    result = await run_program("consume", daemon.endpoint, way, group, str(WAYS[way]))
    records = float(result["records"])
    cpu_s = own_s(pid) - spent_s + float(result["cpu_s"])
    return Taken(records / float(result["seconds"]) / 1e6, cpu_s / records * 1e6)


async def unhindered_round(table: dict[str, Row]) -> None:
    """Plain and ordered groups of which nothing fails take turns, and so does who begins."""
    async with running_daemon() as daemon:
        await create(daemon, TOPIC, PARTITIONS)
        await run_program(
            "produce_prebuilt", daemon.endpoint, str(max(WAYS.values()) + 12_000), "1000"
        )
        for way in WAYS:
            await declare(daemon, f"ordered-{way}")
            row = table[f"ordered_{way}"]
            groups = [f"plain-{way}", f"ordered-{way}"]
            if len(row.rounds) % 2:
                groups.reverse()
            taken = {group: await consumed(daemon, way, group) for group in groups}
            plain, ours = taken[f"plain-{way}"], taken[f"ordered-{way}"]
            row.add(ours.rate, plain.rate)
            table[f"ordered_{way}_cpu"].add(ours.cpu_us, plain.cpu_us)


async def good_keys(daemon: Daemon, group: str, mode: str, records: int) -> float:
    """Thousands of records of good keys a second."""
    result = await run_program("good_keys", daemon.endpoint, group, ALONE, mode, str(records))
    return float(result["records"]) / float(result["seconds"]) / 1e3


async def poison_round(table: dict[str, Row]) -> None:
    """A good key beside one that fails: while its followers come, and once they wait."""
    async with running_daemon() as daemon:
        await create(daemon, ALONE, 1)
        for name in ("without", "with"):
            await declare(daemon, name, ALONE)
        await send(daemon, [b"good", BAD] * FOLLOWERS, 1_000)
        without = await good_keys(daemon, "without", "none", FOLLOWERS)
        meeting = await good_keys(daemon, "with", "fails", FOLLOWERS)
        table["poison_met"].add(meeting, without)
        await fail_all(daemon, "with", FOLLOWERS)
        await send(daemon, [b"good"] * BESIDE, 1_000)
        rates = await in_turns(daemon, "none", BESIDE, len(table["poison"].rounds))
    table["poison"].add(rates["with"], rates["without"])


async def in_turns(daemon: Daemon, mode: str, records: int, turn: int) -> dict[str, float]:
    """The rates of a group where keys wait, and of one where none does."""
    names = ("with", "without") if turn % 2 else ("without", "with")
    return {name: await good_keys(daemon, name, mode, records) for name in names}


async def waiting_round(table: dict[str, Row]) -> None:
    """A lane in which many keys wait, and one in which none does, by batch."""
    for layout, (frame_records, records) in FRAMES.items():
        async with running_daemon() as daemon:
            await create(daemon, ALONE, 1)
            await declare(daemon, "with", ALONE)
            await send(daemon, [b"%s%05d" % (BAD, at) for at in range(WAITING)], 1_000)
            await fail_all(daemon, "with", WAITING)
            await declare(daemon, "without", ALONE, start="now")
            row = table[f"waiting_{layout}"]
            await send(daemon, [b"key-%04d" % (at % 9_973) for at in range(records)], frame_records)
            rates = await in_turns(daemon, "batch", records, len(row.rounds))
        row.add(rates["with"] / 1e3, rates["without"] / 1e3)


async def beside_round(table: dict[str, Row]) -> None:
    """One key in a hundred fails whenever it comes, after the usual back-off; or none does."""
    async with running_daemon() as daemon:
        await create(daemon, TOPIC, PARTITIONS)
        names = ["none", "fails"]
        if len(table["beside99"].rounds) % 2:
            names.reverse()
        took: dict[str, float] = {}
        for name in names:
            await declare(daemon, name, start="now", backoff=BACK_OFF_USUAL_S)
            took[name] = float(
                (await run_program("beside_bad", daemon.endpoint, name, name))["p99_ms"]
            )
    table["beside99"].add(took["fails"], took["none"])


async def measured(table: dict[str, Row]) -> None:
    """One round of all of it."""
    await unhindered_round(table)
    await poison_round(table)
    await waiting_round(table)
    await beside_round(table)
    longest = await asyncio.to_thread(lane_steps.longest_ms)
    for name, took_ms in longest.items():
        table[f"step_{name}"].add(took_ms)
    table["index_entry"].add(await asyncio.to_thread(lane_steps.bytes_of_an_entry))


def rows() -> dict[str, Row]:
    """Its part of the table of targets."""
    million, thousand, plain = "M records/s", "k records/s", "the same in a plain group"
    rates = {"batch": ">= 0.80", "record": ">= 0.70", "fetch": "", "run": ""}
    costs = {"batch": "<= 1.25", "record": "<= 1.43", "fetch": "", "run": ""}
    found = {}
    for way in WAYS:
        name = "ordered, none fails, by " + way
        found[f"ordered_{way}"] = Row(name, million, "", plain, rates[way])
        found[f"ordered_{way}_cpu"] = Row(
            "  processor time of client and daemon", "us", "", plain, costs[way]
        )
    none = "the same, and nothing fails"
    found |= {
        "poison": Row(
            "a good key beside 20,000 of a bad one that wait", thousand, "", none, ">= 0.95"
        ),
        "poison_met": Row("  while they come", thousand, "", "the same, and nothing fails"),
        "waiting_arrow": Row(
            "ordered, 10,000 keys wait, 1,000 a frame", million, "", none, ">= 0.83"
        ),
        "waiting_rows": Row("  20 a frame", million, "", none, ">= 0.67"),
        "beside99": Row("one record beside 1 % bad keys, p99", "ms", "", none, "<= 1.1"),
        **{
            f"step_{name}": Row(f"longest step, {what}", "ms", "<= 5")
            for name, what in lane_steps.CASES.items()
        },
        "index_entry": Row("a record that waits, in the index", "bytes", "<= 250"),
    }
    return found
