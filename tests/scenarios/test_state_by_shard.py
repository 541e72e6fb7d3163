"""Programs that keep state by shard, on a real daemon: nobody else has a shard of theirs."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

import dss_client
import dss_client.sync
from dss_client import Client, DeliveredRecord, Shard
from dss_client.changes import SetShardCount, Undo
from support.revived_daemon import RevivedDaemon, revived

FILTER = "$share/g/orders/#"
PARTITIONS = 12
KEYS = [b"k%d" % at for at in range(48)]
PATIENCE_S = 60.0


class Aggregate:
    """Sums by key in SQLite, written by whoever has the key's shard, fenced by its epoch."""

    def __init__(self, path: Path) -> None:
        self._rows = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._rows.execute("PRAGMA synchronous = OFF")  # no test loses power
        self._rows.execute(
            "CREATE TABLE IF NOT EXISTS sums (key BLOB PRIMARY KEY, sum INTEGER, epoch INTEGER)"
        )

    def add(self, key: bytes, number: int, epoch: int) -> bool:
        """Whether it counted: who has a lower epoch than the key's row writes nothing."""
        done = self._rows.execute(
            "INSERT INTO sums VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE "
            "SET sum = sum + excluded.sum, epoch = excluded.epoch WHERE epoch <= excluded.epoch",
            (key, number, epoch),
        )
        return done.rowcount == 1

    def sums(self) -> dict[bytes, int]:
        """Of all keys."""
        return dict(self._rows.execute("SELECT key, sum FROM sums"))


class Owners:
    """Who has which shard by what members were told; it looks at every change."""

    def __init__(self) -> None:
        self.has: dict[str, dict[Shard, int]] = {}
        self.epochs: dict[int, int] = {}
        self.wrong: list[str] = []

    def assigned(self, name: str, shards: tuple[Shard, ...], epoch: int) -> None:
        for shard in shards:
            partitions = covered(shard)
            for other, theirs in self.has.items():
                both = [each for each in theirs if other != name and covered(each) & partitions]
                self.wrong += [
                    f"{name} was given {shard} while {other} has {each}" for each in both
                ]
            self.wrong += [
                f"{name} has {shard} with {epoch}, and {at} had {self.epochs[at]}"
                for at in partitions
                if epoch <= self.epochs.get(at, 0)
            ]
            self.epochs |= dict.fromkeys(partitions, epoch)
            self.has.setdefault(name, {})[shard] = epoch

    def lost(self, name: str, shards: tuple[Shard, ...]) -> None:
        for shard in shards:
            del self.has[name][shard]

    def look(self, name: str, record: DeliveredRecord | dss_client.sync.DeliveredRecord) -> None:
        shard = record.shard
        if shard is None or self.has.get(name, {}).get(shard) != record.shard_epoch:
            self.wrong.append(f"{name} was given {record!r} of {shard} without having it")

    def held(self) -> list[Shard]:
        return sorted(shard for theirs in self.has.values() for shard in theirs)


def covered(shard: Shard) -> set[int]:
    return {at for at in range(PARTITIONS) if shard.covers(at, PARTITIONS)}


@asynccontextmanager
async def sharded(shards: int) -> AsyncIterator[tuple[RevivedDaemon, Client]]:
    """A daemon, a client, and an ordered group of so many shards."""
    async with (
        asyncio.timeout(PATIENCE_S),
        revived() as daemon,
        dss_client.connect(endpoint=daemon.endpoint) as client,
    ):
        await client.topics.create("orders", partitions=PARTITIONS)
        await client.groups.create(
            FILTER, start="earliest", ordered=True, max_deliver=5, shards=shards
        )
        yield daemon, client


async def member(daemon: RevivedDaemon, name: str, owners: Owners, sums: Aggregate) -> None:
    """Adds each record to the sum of its key, until it is cancelled."""
    async with (
        dss_client.connect(name, endpoint=daemon.endpoint) as client,
        client.subscribe(
            FILTER,
            on_assigned=lambda shards, epoch: owners.assigned(name, shards, epoch),
            on_lost=lambda shards: owners.lost(name, shards),
        ) as subscription,
    ):
        async for record in subscription:
            owners.look(name, record)
            assert record.key is not None
            if sums.add(record.key, int(record.payload), record.shard_epoch):
                await record.ack()


async def publish(client: Client, numbers: range) -> None:
    async with client.producer("orders") as producer:
        await producer.send_columns(
            payloads=[b"%d" % at for at in numbers], keys=[KEYS[at % len(KEYS)] for at in numbers]
        )


async def settled(client: Client) -> None:
    while (await client.groups.describe("g")).group.lag:  # noqa: ASYNC110 - it is asked
        await asyncio.sleep(0.02)


async def until_held(owners: Owners, shards: int) -> None:
    wanted = [Shard(at, shards) for at in range(shards)]
    while owners.held() != wanted:  # noqa: ASYNC110 - members tell it by callbacks
        await asyncio.sleep(0.01)


@pytest.mark.slow("members come, are cut anew twice and go, in a real daemon")
async def test_a_sum_by_key_is_exact_over_members_that_come_and_go_and_other_counts(
    tmp_path: Path,
) -> None:
    owners, sums = Owners(), Aggregate(tmp_path / "sums.db")
    async with sharded(3) as (daemon, client), AsyncExitStack() as stack:
        tasks: dict[str, asyncio.Task[None]] = {}

        def begin(name: str) -> None:
            work = member(daemon, name, owners, sums)
            tasks[name] = asyncio.create_task(work, name=f"member {name}")
            stack.callback(tasks[name].cancel)

        for name in ("ann", "bob", "cid"):
            begin(name)
        await publish(client, range(600))
        await until_held(owners, 3)
        cut = await client.operations.apply(SetShardCount("g", 6))
        await publish(client, range(600, 1_200))
        await until_held(owners, 6)
        begin("dan")
        tasks["ann"].cancel()
        await asyncio.wait([tasks["ann"]])
        assert owners.has["ann"] == {}
        await publish(client, range(1_200, 1_800))
        await client.operations.apply(Undo(cut.number))
        await until_held(owners, 3)
        await settled(client)
        assert owners.wrong == []
        found = await client.groups.shards("g")
        assert [len(each.streams) for each in found.each] == [4, 4, 4]
        assert sorted(each.holders[0] for each in found.each) == ["bob", "cid", "dan"]
    wanted = {key: sum(range(at, 1_800, len(KEYS))) for at, key in enumerate(KEYS)}
    assert sums.sums() == wanted


async def test_without_asyncio_a_member_is_told_of_its_shards_too(tmp_path: Path) -> None:
    owners, sums = Owners(), Aggregate(tmp_path / "sums.db")
    async with sharded(4) as (daemon, client):
        await publish(client, range(96))

        def consume() -> None:
            with (
                dss_client.sync.connect("eve", endpoint=daemon.endpoint) as reader,
                reader.subscribe(
                    FILTER,
                    on_assigned=lambda shards, epoch: owners.assigned("eve", shards, epoch),
                    on_lost=lambda shards: owners.lost("eve", shards),
                ) as subscription,
            ):
                for _ in range(96):
                    record = next(iter(subscription))
                    owners.look("eve", record)
                    assert record.key is not None
                    assert sums.add(record.key, int(record.payload), record.shard_epoch)
                    record.ack()

        thread = threading.Thread(target=consume, name="eve")
        thread.start()
        await asyncio.to_thread(thread.join)
        await settled(client)
    assert owners.wrong == []
    assert owners.held() == []
    assert sum(sums.sums().values()) == sum(range(96))
