"""Backups of a daemon that runs, and what is there after a restore.

What a producer was told and what a consumer acknowledged before the backup began is held against a
plain reading of the restored log, and against what the group gets; not against the daemon's counts.
"""

import asyncio
import os
import signal
import subprocess
import sys
import tarfile
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import dss_client
from dss_client import Client
from dss_core.backups.directory import BackupDirectory
from dss_core.errors import (
    BackupFailed,
    BackupTargetUnfit,
    BackupUnderWay,
    DssError,
    NoRoomForBackup,
)
from dssd.backups.verify import verified
from dssd.data_directory import SNAPSHOT_NAME, STORE_NAME
from support.daemon_process import DaemonProcess, running, short_directory
from support.file_locks import locks_on
from support.proof_share import only_in_proof
from support.small_disk import CannotMount, fill, mounted

TOPIC, GROUP = "orders", "$share/billing/orders/#"
IN_THE_PAST = Path(__file__).parent / "programs" / "daemon_in_the_past.py"
PATIENCE_S = 60.0
Place = tuple[str, int]
"""Stream and offset."""


def dssd(*words: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "dssd", *map(str, words)]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def restored(backups: Path, into: Path) -> Path:
    done = dssd("restore", backups, "--into", into)
    assert done.returncode == 0, done.stderr
    return into


@dataclass(slots=True)
class Seen:
    """What programs were told."""

    stored: dict[Place, bytes] = field(default_factory=dict)
    """By the ack of the publish."""
    acked: set[bytes] = field(default_factory=set)
    """Payloads whose acknowledgement is durable, as the daemon said."""


async def publish(client: Client, seen: Seen, stop: asyncio.Event) -> None:
    number = 0
    async with client.producer(TOPIC) as producer:
        while not stop.is_set():
            payload = b"%d" % number
            ack = await producer.send(payload, key=b"%d" % (number % 97))
            seen.stored[ack.stream, ack.offset] = payload
            number += 1


async def consume(client: Client, seen: Seen, stop: asyncio.Event) -> None:
    async with client.subscribe(GROUP) as subscription:
        async for record in subscription:
            if int(record.payload) % 13 == 0:
                await record.reject()
            else:
                await record.ack(sync=True)
                seen.acked.add(record.payload)
            if stop.is_set():
                return


@asynccontextmanager
async def load(daemon: DaemonProcess) -> AsyncIterator[tuple[Client, Seen, asyncio.Event]]:
    """A producer and a member of a group with dead letters, until they are told to stop."""
    seen, stop = Seen(), asyncio.Event()
    async with dss_client.connect("operator", endpoint=daemon.endpoint) as client:
        await client.topics.create(TOPIC, partitions=4)
        await client.groups.create(GROUP, start="earliest", max_deliver=3)
        async with asyncio.TaskGroup() as tasks:
            publishing = tasks.create_task(publish(client, seen, stop))
            consuming = tasks.create_task(consume(client, seen, stop))
            yield client, seen, stop
            stop.set()
            await publishing
            consuming.cancel()


async def log_of(client: Client) -> dict[Place, bytes]:
    """All records, by a plain reading."""
    found: dict[Place, bytes] = {}
    async for record in client.read(f"{TOPIC}/#", start="earliest"):
        found[record.stream, record.offset] = record.payload
    return found


async def until(holds: Callable[[], bool]) -> None:
    """Wait for what other processes do."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if holds():
                return
            await asyncio.sleep(0.001)


@pytest.mark.slow("load, a deep look, and a group that starts anew behind its leases")
async def test_all_that_was_confirmed_before_the_backup_is_there_after_a_restore() -> None:
    with short_directory() as home:
        async with running("--data-dir", str(home / "data")) as daemon, load(daemon) as loaded:
            client, seen, _ = loaded
            await until(lambda: len(seen.stored) >= 300)
            await until(lambda: len(seen.acked) >= 50)
            stored, acked = dict(seen.stored), set(seen.acked)
            locks = locks_on(home / "data" / STORE_NAME)
            await client.backups.create(home / "backups")
            assert locks_on(home / "data" / STORE_NAME) == locks
            await until(lambda: len(seen.stored) >= len(stored) + 200)
            behind = dict(seen.stored)
        deep = dssd("verify", "--deep", home / "backups")
        assert deep.returncode == 0, deep.stdout
        into = restored(home / "backups", home / "new")
        async with (
            running("--data-dir", str(into)) as daemon,
            dss_client.connect("other", endpoint=daemon.endpoint) as client,
        ):
            log = await log_of(client)
            assert stored.items() <= log.items()
            assert log.items() <= behind.items()
            lost = behind.keys() - log.keys()
            assert lost, "something came behind the backup"
            async with client.producer(TOPIC) as producer:
                acks = [await producer.send(b"-1", key=b"%d" % each) for each in range(97)]
            given = {(ack.stream, ack.offset) for ack in acks}
            assert not given & behind.keys(), "an offset was given to another record"
            assert all(ack.offset > 1 << 40 for ack in acks)
            assert await log_of(client) == log | dict.fromkeys(given, b"-1")
            got = await taken(client, len(acks))
            assert not acked & got.keys(), "what was acknowledged comes again"
            failed = set(log.values()) - seen.acked - got.keys()
            assert all(int(each) % 13 == 0 for each in failed), "it is lost to the group"
            assert all(got[each] for each in got if each != b"-1"), "it was perhaps handed out"


async def taken(client: Client, new: int) -> dict[bytes, bool]:
    """What the group gets until it has all the new ones; each with whether it is marked."""
    got: dict[bytes, bool] = {}
    seen = 0
    async with asyncio.timeout(PATIENCE_S), client.subscribe(GROUP) as subscription:
        async for record in subscription:
            got[record.payload] = record.redelivered
            await record.ack(sync=True)
            seen += record.payload == b"-1"
            group = (await client.groups.describe("billing")).group if seen >= new else None
            if group is not None and group.lag + group.retrying == 0:
                return got
    raise AssertionError("the subscription ended")


async def test_the_second_backup_takes_what_is_new_and_a_tar_has_all() -> None:
    with short_directory() as home:
        async with running("--data-dir", str(home / "data")) as daemon, load(daemon) as loaded:
            client, seen, stop = loaded
            await until(lambda: len(seen.stored) >= 50)
            first = await client.backups.create(home / "b")
            stop.set()
            second = await client.backups.create(home / "b")
            assert (first.manifest.number, second.manifest.number) == (1, 2)
            with (home / "all.tar").open("wb") as file:
                await client.backups.write_tar(file)
            status = await client.daemon.status()
            assert status.backup_at_ms is not None
        (home / "unpacked").mkdir()
        with tarfile.open(home / "all.tar") as tar:
            tar.extractall(home / "unpacked", filter="data")
        assert dssd("verify", home / "unpacked").returncode == 0
        into = restored(home / "unpacked", home / "new")
        assert dssd("check", "--deep", "--data-dir", into).returncode == 0


@pytest.mark.parametrize("in_place", [True, False])
async def test_a_topic_at_rest_costs_the_next_backup_nothing(in_place: bool) -> None:
    with short_directory() as home:
        async with filled(home, in_place=in_place) as (_, client):
            await client.topics.create("busy", partitions=1)
            async with client.producer("busy") as producer:
                await producer.send(b"x")
                let_time_pass(home / "data" / "log")
                await client.backups.create(home / "b")
                second = await client.backups.create(home / "b")
                store = (home / "data" / STORE_NAME).stat().st_size
                assert second.new_bytes < store + (16 << 10) < second.bytes
                await producer.send(b"y")
            third = await client.backups.create(home / "b")
            large = {each for each in second.manifest.files if each.bytes > 1 << 20}
            large = {each for each in large if each.name != STORE_NAME}
            assert large
            assert {each.name for each in large if each not in third.manifest.files} == set()
        restored(home / "b", home / "new")
        async with (
            running("--data-dir", str(home / "new")) as daemon,
            dss_client.connect("reader", endpoint=daemon.endpoint) as client,
        ):
            assert [each.payload async for each in client.read("busy/#")] == [b"x", b"y"]
            assert len(await log_of(client)) == 64


def let_time_pass(folder: Path) -> None:
    """What lies there was written an hour ago."""
    for path in folder.iterdir():
        at_ns = path.stat().st_mtime_ns - 3_600 * 1_000_000_000
        os.utime(path, ns=(at_ns, at_ns))


@asynccontextmanager
async def filled(
    home: Path, *, in_place: bool = True
) -> AsyncIterator[tuple[DaemonProcess, Client]]:
    """A daemon with a few records, and a client beside it, or one that sees none of its files."""
    listen = ("--listen", f"unix:{home / 's'}", "--listen", "127.0.0.1:0")
    async with running("--data-dir", str(home / "data"), *listen) as daemon:
        endpoint = daemon.endpoints[0 if in_place else 1]
        async with dss_client.connect("operator", endpoint=endpoint, patient=False) as client:
            await _fill(client)
            yield daemon, client


async def _fill(client: Client) -> None:
    await client.topics.create(TOPIC, partitions=2)
    async with client.producer(TOPIC) as producer:
        for number in range(64):
            await producer.send(os.urandom(32 << 10), key=b"%d" % number)


async def begun(home: Path) -> None:
    """The daemon has taken a snapshot for a backup."""
    await until((home / "data" / SNAPSHOT_NAME / STORE_NAME).exists)


@pytest.mark.parametrize("in_place", [True, False])
async def test_a_daemon_that_is_killed_in_a_backup_leaves_what_was_there(in_place: bool) -> None:
    with short_directory() as home:
        async with filled(home, in_place=in_place) as (daemon, client):
            await client.backups.create(home / "b")
            making = asyncio.create_task(client.backups.create(home / "b", bytes_s=1 << 20))
            await begun(home)
            await daemon.kill()
            with pytest.raises(DssError):
                await making
        assert [each.number for each in BackupDirectory.existing(home / "b").manifests()] == [1]
        async with (
            running("--data-dir", str(home / "data")) as daemon,
            dss_client.connect("operator", endpoint=daemon.endpoint) as client,
        ):
            assert not (home / "data" / SNAPSHOT_NAME).exists()
            assert (await client.backups.create(home / "b")).manifest.number == 2
        assert dssd("verify", home / "b").returncode == 0


async def test_a_tool_that_is_killed_holds_nothing_up() -> None:
    with short_directory() as home:
        async with filled(home) as (daemon, client):
            words = ("--endpoint", daemon.endpoint, "backup", "create", home / "b", "--rate", "1M")
            command = [sys.executable, "-m", "dssctl", *map(str, words)]
            tool = await asyncio.create_subprocess_exec(*command)
            await begun(home)
            tool.send_signal(signal.SIGKILL)
            await tool.wait()
            await until(lambda: not (home / "data" / SNAPSHOT_NAME).exists())
            assert (await client.backups.create(home / "b")).manifest.number == 1
        assert dssd("verify", home / "b").returncode == 0


async def test_what_cannot_be_is_refused_before_anything_begins() -> None:
    with short_directory() as home:
        async with filled(home) as (_, client):
            (home / "mine").mkdir()
            (home / "mine" / "file").write_text("x")
            for place in (home / "data", home / "data" / "b", home / "mine", home / "no" / "b"):
                with pytest.raises(BackupTargetUnfit):
                    await client.backups.create(place)
            making = asyncio.create_task(client.backups.create(home / "b", bytes_s=4 << 20))
            await begun(home)
            with pytest.raises(BackupUnderWay):
                await client.backups.create(home / "b")
            with pytest.raises(BackupUnderWay):
                await client.backups.create(home / "other")
            await making
        assert sorted(each.name for each in (home / "mine").iterdir()) == ["file"]


async def test_a_full_disk_at_the_destination_is_told_and_leaves_what_was_there() -> None:
    with short_directory() as home:
        try:
            with mounted(home / "disk", 28 << 20) as disk:
                async with filled(home) as (_, client):
                    await client.backups.create(disk / "b")
                    (disk / "filler").write_bytes(bytes(8 << 20))
                    with pytest.raises(NoRoomForBackup):
                        await client.backups.create(disk / "b")
                    (disk / "filler").unlink()
                    filling = asyncio.create_task(
                        client.backups.create(disk / "b", bytes_s=1 << 20)
                    )
                    await until((disk / "b" / "incoming").exists)
                    filler = fill(disk)
                    with pytest.raises(BackupFailed, match="is full"):
                        await filling
                    filler.unlink()
                    assert dssd("verify", disk / "b").returncode == 0
                    assert (await client.backups.create(disk / "b")).manifest.number == 2
        except CannotMount as reason:
            pytest.skip(str(reason))


async def test_a_flipped_bit_in_each_file_of_a_backup_is_named_by_verify() -> None:
    with short_directory() as home:
        async with filled(home) as (_, client):
            made = await client.backups.create(home / "b")
        source = BackupDirectory.existing(home / "b")
        files = {each.name: source.path_of(each) for each in made.manifest.files}
        files = {"backups/000001.json": home / "b" / "backups" / "000001.json", **files}
        for name, path in files.items():
            whole = path.read_bytes()
            at = len(whole) // 2
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
            found = verified(home / "b", None, deep=False, told=lambda _: None)
            assert [name in where for where, _ in found.damage] == [True], name
            path.write_bytes(whole)
        path.write_bytes(b"")
        assert dssd("verify", home / "b").returncode == 1
        assert dssd("restore", home / "b", "--into", home / "new").returncode == 1
        started = dssd("serve", "--data-dir", home / "new")
        assert started.returncode, "a daemon started on half a restore"
        path.write_bytes(whole)
        restored(home / "b", home / "new")


@pytest.mark.slow("five restores, each a process of its own")
async def test_a_restore_changes_nothing_that_is_there() -> None:
    with short_directory() as home:
        async with filled(home) as (_, client):
            await client.backups.create(home / "b")
        mine = home / "mine"
        mine.mkdir()
        (mine / "file").write_text("x")
        for place in (mine, home / "data", home / "data" / "x", home / "b" / "x", home / "n" / "x"):
            refused = dssd("restore", home / "b", "--into", place)
            assert (refused.returncode, "DSS1182" in refused.stderr) == (2, True), refused
        assert [each.name for each in mine.iterdir()] == ["file"]


async def test_a_client_that_is_ahead_of_the_backup_gets_no_other_record_under_its_offset() -> None:
    """Also where the clock was set back before the restore: offsets do not go by it."""
    with short_directory() as home:
        data = home / "data"
        async with filled(home) as (_, client):
            await client.backups.create(home / "b")
            ends: dict[str, int] = defaultdict(int)
            async with client.producer(TOPIC) as producer:
                for number in range(64):
                    ack = await producer.send(b"lost", key=b"%d" % number)
                    ends[ack.stream] = ack.offset + 1
        data.rename(home / "lost")
        restored(home / "b", data)
        arguments = ("--data-dir", str(data))
        async with (
            running(*arguments, program=[str(IN_THE_PAST)], from_nothing=True) as daemon,
            dss_client.connect("reader", endpoint=daemon.endpoint) as client,
        ):
            async with client.producer(TOPIC) as producer:
                for number in range(64):
                    await producer.send(b"new", key=b"%d" % number)
            for stream, end in ends.items():
                found, lost = await read_from(client, stream, end)
                assert lost[0][0] == end
                assert set(found.values()) == {b"new"}
                assert min(found) > 1 << 40


async def read_from(
    client: Client, stream: str, offset: int
) -> tuple[dict[int, bytes], list[tuple[int, int]]]:
    """The records of a stream from an offset on, and what it is told that is lost."""
    lost: list[tuple[int, int]] = []

    def tell(_: str, first: int, last: int) -> None:
        lost.append((first, last))

    reading = client.read(stream=stream, start=offset, on_lost=tell)
    return {record.offset: record.payload async for record in reading}, lost


@only_in_proof
@pytest.mark.parametrize("in_place", [True, False])
async def test_a_backup_that_keeps_the_disk_full_is_given_up(in_place: bool) -> None:
    with short_directory() as home:
        try:
            with mounted(home / "data", 160 << 20) as disk:
                async with filled(home, in_place=in_place) as (_, client):
                    making = asyncio.create_task(client.backups.create(home / "b", bytes_s=1))
                    await until((home / "b" / "incoming").exists)
                    (disk / "filler").write_bytes(bytes(100 << 20))
                    await until(lambda: not (home / "data" / SNAPSHOT_NAME).exists())
                    (disk / "filler").unlink()
                    assert (await client.backups.create(home / "b2")).manifest.number == 1
                    making.cancel()
        except CannotMount as reason:
            pytest.skip(str(reason))


async def test_a_backup_that_is_cancelled_leaves_no_file_and_the_next_one_is_made() -> None:
    with short_directory() as home:
        async with filled(home) as (_, client):
            making = asyncio.create_task(client.backups.create(home / "b", bytes_s=1 << 20))
            await until((home / "b" / "incoming").exists)
            making.cancel()
            await asyncio.wait({making})
            assert not (home / "b" / "incoming").exists()
            await until(lambda: not (home / "data" / SNAPSHOT_NAME).exists())
            assert (await client.backups.create(home / "b")).manifest.number == 1
        assert dssd("verify", home / "b").returncode == 0


async def test_who_lives_through_a_restore_goes_on_and_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with short_directory() as home:
        data = home / "data"
        arguments = ("--data-dir", str(data))
        daemon = await DaemonProcess.start(*arguments)
        async with dss_client.connect("program", endpoint=daemon.endpoint) as client:
            try:
                await client.topics.create(TOPIC, partitions=1)
                async with client.producer(TOPIC) as producer:
                    await producer.send(b"before")
                    await client.backups.create(home / "b")
                    lost = await producer.send(b"behind")
                    await daemon.kill()
                    data.rename(home / "lost")
                    restored(home / "b", data)
                    daemon = await DaemonProcess.start(*arguments)
                    async with asyncio.timeout(PATIENCE_S):
                        after = await producer.send(b"after")
                assert after.offset > lost.offset + (1 << 39)
                assert sorted((await log_of(client)).values()) == [b"after", b"before"]
                assert any("producer of orders" in each for each in told_of_a_restore(caplog))
            finally:
                await daemon.kill()


def told_of_a_restore(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each for each in caplog.messages if "restored from a backup" in each]
