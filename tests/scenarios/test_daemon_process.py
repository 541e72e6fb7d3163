"""Real ``dssd`` processes: locks, sockets, signals, exit codes."""

import asyncio
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from dss_api.v1 import daemon_pb2, groups_pb2, log_pb2, topics_pb2, types_pb2
from dss_core.decode import decode
from dss_core.errors import ExitCode
from dssd.clock import Clock
from dssd.data_directory import STORE_NAME
from dssd.life import Life
from support.daemon_process import DaemonEnded, DaemonProcess, running
from support.raw_stubs import Stubs, condition_of, connected

BROKEN_DAEMON = str(Path(__file__).parent / "programs" / "broken_daemon.py")
HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HTTP2_EMPTY_SETTINGS = bytes.fromhex("000000040000000000")
STATUS = daemon_pb2.DaemonStatusRequest()
SERVING = health_pb2.HealthCheckResponse.SERVING


@pytest.fixture
async def daemon(directory: Path) -> AsyncIterator[DaemonProcess]:
    async with running("--data-dir", str(directory)) as started:
        yield started


def names_in(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


async def health(endpoint: str) -> int:
    async with grpc.aio.insecure_channel(endpoint) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        return int((await stub.Check(health_pb2.HealthCheckRequest())).status)


def stream(
    channel: grpc.aio.Channel, method: str
) -> grpc.aio.StreamStreamMultiCallable[bytes, bytes]:
    return channel.stream_stream(f"/dss_api.v1.{method}")


def unary(channel: grpc.aio.Channel, method: str) -> grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]:
    return channel.unary_unary(f"/dss_api.v1.{method}")


async def refused(*arguments: str, program: Sequence[str] = ("-m", "dssd")) -> DaemonEnded:
    with pytest.raises(DaemonEnded) as ended:
        await DaemonProcess.start(*arguments, program=program)
    assert "Traceback" not in ended.value.said
    return ended.value


def how_it_ended(directory: Path) -> str:
    with Life(directory, Clock()) as life:
        return life.before.reason


async def test_a_daemon_that_listens_is_healthy_and_tells_its_status(
    daemon: DaemonProcess, directory: Path
) -> None:
    assert daemon.endpoints == (f"unix:{directory}/dssd.sock",)
    assert await health(daemon.endpoint) == SERVING
    async with connected(daemon.endpoint) as stubs:
        status = await stubs.daemon.Status(daemon_pb2.DaemonStatusRequest())
    assert status.pid == daemon.process.pid
    assert status.data_dir == str(directory)
    assert status.state == "serving"
    assert list(status.listening) == list(daemon.endpoints)
    assert len(status.boot_id) == 32


async def test_the_socket_and_the_directory_are_for_the_owner_only(directory: Path) -> None:
    made = directory / "data"
    async with running("--data-dir", str(made)):
        assert made.stat().st_mode & 0o777 == 0o700
        assert (made / "dssd.sock").stat().st_mode & 0o077 == 0
        assert (made / "store.sqlite").stat().st_mode & 0o077 == 0


async def test_a_second_daemon_on_the_same_directory_is_refused(
    daemon: DaemonProcess, directory: Path
) -> None:
    other = await refused("--data-dir", str(directory), "--listen", f"unix:{directory}/other")
    assert other.exit_code == 75
    assert "DSS5005" in other.said
    assert await health(daemon.endpoint) == SERVING


async def test_a_second_daemon_on_the_same_socket_is_refused(
    daemon: DaemonProcess, directory: Path
) -> None:
    other = await refused("--data-dir", str(directory / "other"), "--listen", daemon.endpoint)
    assert other.exit_code == 78
    assert "DSS5008" in other.said
    assert STORE_NAME not in names_in(directory / "other")
    assert await health(daemon.endpoint) == SERVING


async def test_a_second_daemon_on_the_same_port_is_refused(directory: Path) -> None:
    async with running("--data-dir", str(directory / "1"), "--listen", "127.0.0.1:0") as first:
        other = await refused("--data-dir", str(directory / "2"), "--listen", first.endpoint)
        assert other.exit_code == ExitCode.CONFIG
        assert STORE_NAME not in names_in(directory / "2")
        assert await health(first.endpoint) == SERVING


async def test_the_socket_of_a_killed_daemon_is_taken_over(directory: Path) -> None:
    async with running("--data-dir", str(directory)) as killed:
        await killed.kill()
    assert (directory / "dssd.sock").is_socket()
    async with running("--data-dir", str(directory)) as daemon:
        assert await health(daemon.endpoint) == SERVING


async def test_a_daemon_listens_on_all_its_addresses(directory: Path) -> None:
    addresses = ("--listen", f"unix:{directory}/s", "--listen", "127.0.0.1:0")
    async with running(
        "--data-dir", str(directory / "data"), *addresses, from_nothing=True
    ) as daemon:
        assert len(daemon.endpoints) == 2
        for endpoint in daemon.endpoints:
            assert await health(endpoint) == SERVING


async def test_what_the_file_says_is_used(directory: Path) -> None:
    file = directory / "dssd.toml"
    file.write_text(f'data_dir = "{directory}/data"\nlisten = "unix:{directory}/s"\n')
    async with running("--config", str(file)) as daemon:
        assert daemon.endpoints == (f"unix:{directory}/s",)
        assert (directory / "data" / "FORMAT").exists()


async def test_a_directory_of_a_newer_version_is_refused(directory: Path) -> None:
    (directory / "FORMAT").write_text("dssd data directory, format 999\n")
    ended = await refused("--data-dir", str(directory))
    assert ended.exit_code == ExitCode.CONFIG
    assert "DSS5006" in ended.said


async def test_a_socket_path_that_is_too_long_is_refused(directory: Path) -> None:
    ended = await refused("--data-dir", str(directory / ("d" * 100)))
    assert ended.exit_code == ExitCode.CONFIG
    assert "DSS1012" in ended.said
    assert names_in(directory) == []


async def test_tcp_beyond_loopback_is_refused(directory: Path) -> None:
    ended = await refused("--data-dir", str(directory), "--listen", "0.0.0.0:0")
    assert ended.exit_code == ExitCode.CONFIG
    assert "DSS1014" in ended.said


async def test_a_damaged_store_is_refused(directory: Path) -> None:
    async with running("--data-dir", str(directory)) as daemon:
        await daemon.stop()
    (directory / "store.sqlite").write_bytes(b"not a database, and long enough " * 200)
    ended = await refused("--data-dir", str(directory))
    assert ended.exit_code == 74
    assert "DSS4002" in ended.said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_stops_an_idle_daemon_at_once(
    daemon: DaemonProcess, directory: Path, number: signal.Signals
) -> None:
    began = time.monotonic()
    daemon.process.send_signal(number)
    assert await daemon.wait() == ExitCode.OK
    assert time.monotonic() - began < 5
    assert "Traceback" not in daemon.said
    assert not (directory / "dssd.sock").exists()


async def test_a_stop_ends_the_calls_that_run_and_says_why(daemon: DaemonProcess) -> None:
    async with connected(daemon.endpoint) as stubs:
        await stubs.topics.Create(topics_pb2.CreateTopicRequest(name="orders", partitions=2))
        reading = aiter(stubs.log.Read(log_pb2.ReadRequest(filter="orders/#", follow=True)))
        assert len((await anext(reading)).streams) == 2
        producing = stubs.log.Produce()
        await producing.write(log_pb2.ProduceRequest(topic="orders"))
        await stubs.daemon.Status(daemon_pb2.DaemonStatusRequest())
        began = time.monotonic()
        daemon.process.terminate()
        for replies in (reading, aiter(producing)):
            with pytest.raises(grpc.aio.AioRpcError) as ended:
                await anext(replies)
            assert condition_of(ended.value).code == "DSS5002"
        assert await daemon.wait() == ExitCode.OK
        assert time.monotonic() - began < 10


async def test_what_was_acknowledged_before_a_stop_under_load_is_kept(directory: Path) -> None:
    acknowledged = 0
    under_load = asyncio.Event()

    async def publish_until_it_stops(stub: Stubs) -> None:
        nonlocal acknowledged
        record = types_pb2.Record(payload=bytes(1_000))
        request = log_pb2.PublishRequest(topic="orders", records=[record] * 10)
        try:
            while True:
                await stub.log.Publish(request)
                acknowledged += 10
                if acknowledged >= 1_000:
                    under_load.set()
        except grpc.aio.AioRpcError:
            return

    async with (
        running("--data-dir", str(directory)) as daemon,
        connected(daemon.endpoint) as stubs,
        asyncio.TaskGroup() as tasks,
    ):
        await stubs.topics.Create(topics_pb2.CreateTopicRequest(name="orders", partitions=3))
        for _ in range(8):
            tasks.create_task(publish_until_it_stops(stubs))
        await under_load.wait()
        began = time.monotonic()
        assert await daemon.stop() == ExitCode.OK
        assert time.monotonic() - began < 10
    async with (
        running("--data-dir", str(directory)) as daemon,
        connected(daemon.endpoint) as stubs,
    ):
        described = await stubs.topics.Describe(topics_pb2.DescribeTopicRequest(name="orders"))
        ends = [stream.end for stream in described.storage_topics[0].streams]
        assert sum(ends) >= acknowledged


async def test_a_second_signal_ends_a_stop_that_takes_its_time(daemon: DaemonProcess) -> None:
    daemon.process.send_signal(signal.SIGTERM)
    daemon.process.send_signal(signal.SIGINT)
    # Either the stop was over before the second signal came, or that one ended it; of two that
    # wait at once the system chooses which is the second.
    ended = {ExitCode.OK, 128 + signal.SIGINT, 128 + signal.SIGTERM}
    assert await daemon.wait() in ended


async def test_a_programmers_error_in_a_call_stops_the_daemon_loudly(directory: Path) -> None:
    broken = (BROKEN_DAEMON, "blunder")
    async with (
        running("--data-dir", str(directory), program=broken) as daemon,
        connected(daemon.endpoint) as stubs,
    ):
        with pytest.raises(grpc.aio.AioRpcError):
            await stubs.log.Publish(log_pb2.PublishRequest(topic="orders"))
        assert await daemon.wait() == 70
        assert "Traceback" in daemon.said
        assert "ZeroDivisionError: a programmer's error" in daemon.said
    assert how_it_ended(directory).startswith(
        "exit 70, ZeroDivisionError: a programmer's error (broken_"
    )


async def test_what_an_operators_call_meets_in_the_core_stops_the_daemon_all_the_same(
    directory: Path,
) -> None:
    broken = (BROKEN_DAEMON, "blunder-of-leaders")
    async with (
        running("--data-dir", str(directory), program=broken) as daemon,
        connected(daemon.endpoint) as stubs,
    ):
        await stubs.topics.Create(topics_pb2.CreateTopicRequest(name="orders", partitions=1))
        with pytest.raises(grpc.aio.AioRpcError):  # its reply shows how the group stands
            await stubs.groups.Create(groups_pb2.CreateGroupRequest(filter="$share/g/orders/#"))
        assert await daemon.wait() == 70
        assert "ZeroDivisionError: a programmer's error" in daemon.said


async def test_a_programmers_error_in_a_thread_is_not_taken_for_a_failed_disk(
    directory: Path,
) -> None:
    broken = (BROKEN_DAEMON, "thread")
    async with (
        running("--data-dir", str(directory), program=broken) as daemon,
        connected(daemon.endpoint) as stubs,
    ):
        with pytest.raises(grpc.aio.AioRpcError):
            await stubs.topics.Create(topics_pb2.CreateTopicRequest(name="orders", partitions=1))
        assert await daemon.wait() == 70
        assert "ZeroDivisionError: a programmer's error" in daemon.said
        assert "DSS5007" not in daemon.said


async def test_a_disk_that_fails_stops_the_daemon_before_it_acknowledges(directory: Path) -> None:
    broken = (BROKEN_DAEMON, "disk")
    async with (
        running("--data-dir", str(directory), program=broken) as daemon,
        connected(daemon.endpoint) as stubs,
    ):
        await stubs.topics.Create(topics_pb2.CreateTopicRequest(name="orders", partitions=1))
        record = types_pb2.Record(payload=b"x")
        began = time.monotonic()
        with pytest.raises(grpc.aio.AioRpcError) as ended:
            await stubs.log.Publish(log_pb2.PublishRequest(topic="orders", records=[record]))
        assert ended.value.code() == grpc.StatusCode.UNAVAILABLE
        assert await daemon.wait() == ExitCode.IO_ERROR
        assert time.monotonic() - began < 1
        assert "DSS5007" in daemon.said
        assert "Traceback" not in daemon.said
    assert how_it_ended(directory).startswith("exit 74, DSS5007: ")


async def test_a_store_that_is_found_damaged_stops_the_daemon(
    directory: Path,
) -> None:
    broken = (BROKEN_DAEMON, "damaged")
    async with (
        running("--data-dir", str(directory), program=broken) as daemon,
        connected(daemon.endpoint) as stubs,
    ):
        with pytest.raises(grpc.aio.AioRpcError):
            await stubs.topics.Create(topics_pb2.CreateTopicRequest(name="orders", partitions=1))
        assert await daemon.wait() == ExitCode.IO_ERROR
        assert "DSS4002" in daemon.said
        assert "Traceback" not in daemon.said


async def orders_with_a_record(stubs: Stubs) -> None:
    await stubs.topics.Create(topics_pb2.CreateTopicRequest(name="orders", partitions=1))
    record = types_pb2.Record(payload=b"kept")
    await stubs.log.Publish(log_pb2.PublishRequest(topic="orders", records=[record]))


async def payloads_of_orders(stubs: Stubs) -> list[bytes]:
    read = log_pb2.ReadRequest(stream="orders/0/0")
    frames = [reply.frames async for reply in stubs.log.Read(read) if reply.frames]
    return list(decode(b"".join(frames)).payloads)


@pytest.mark.parametrize("killed", [False, True])
async def test_a_store_that_cannot_write_is_read_after_a_restart(
    directory: Path, *, killed: bool
) -> None:
    async with (
        running("--data-dir", str(directory)) as daemon,
        connected(daemon.endpoint) as stubs,
    ):
        await orders_with_a_record(stubs)
        await stubs.groups.Create(groups_pb2.CreateGroupRequest(filter="$share/g/orders/#"))
        await (daemon.kill() if killed else daemon.stop())
    async with (
        running("--data-dir", str(directory), program=(BROKEN_DAEMON, "full")) as daemon,
        connected(daemon.endpoint) as stubs,
    ):
        assert await payloads_of_orders(stubs) == [b"kept"]
        assert (await stubs.groups.List(groups_pb2.ListGroupsRequest())).groups
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await stubs.topics.Create(topics_pb2.CreateTopicRequest(name="more", partitions=1))
        assert condition_of(refused.value).code == "DSS3001"
        if killed:  # then the log has no file to go on in
            assert await published(stubs) == "DSS3001"
            assert (await stubs.daemon.Status(STATUS)).state == "read-only"
            asked = daemon_pb2.FindingsRequest(topic="orders")
            first = (await stubs.daemon.Findings(asked)).findings[0]
            assert (first.code, first.level) == ("daemon.state", "problem"), "on its page, too"
        assert await daemon.stop() == ExitCode.OK
    async with (
        running("--data-dir", str(directory)) as daemon,
        connected(daemon.endpoint) as stubs,
    ):
        assert await payloads_of_orders(stubs) == [b"kept"]
        assert await published(stubs) == ""
        assert (await stubs.daemon.Status(STATUS)).state == "serving"


async def published(stubs: Stubs) -> str:
    """Whether a record was stored: the code of the refusal, or nothing."""
    record = types_pb2.Record(payload=b"more")
    try:
        await stubs.log.Publish(log_pb2.PublishRequest(topic="orders", records=[record]))
    except grpc.aio.AioRpcError as refused:
        return condition_of(refused).code
    return ""


async def test_a_start_for_which_the_disk_has_no_room_is_named(directory: Path) -> None:
    ended = await refused("--data-dir", str(directory), program=(BROKEN_DAEMON, "no-room"))
    assert ended.exit_code == ExitCode.IO_ERROR
    assert "DSS5011" in ended.said
    assert f"The disk that holds {directory} is full" in ended.said


async def test_bytes_that_are_no_message_end_their_call_only(daemon: DaemonProcess) -> None:
    async with grpc.aio.insecure_channel(daemon.endpoint) as channel:
        for method in ("Log/Produce", "Sessions/Attach"):
            call = stream(channel, method)()
            await call.write(b"\xff no message")
            with pytest.raises(grpc.aio.AioRpcError) as ended:
                await call.read()
            assert condition_of(ended.value).code == "DSS1015"
        for method in ("Log/Publish", "Topics/Create", "Groups/Create"):
            with pytest.raises(grpc.aio.AioRpcError) as ended:
                await unary(channel, method)(b"\xff no message")
            assert condition_of(ended.value).code == "DSS1015"
    assert await health(daemon.endpoint) == SERVING


async def test_dev_keeps_everything_in_a_directory_that_goes(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(directory))
    assert tempfile.gettempdir()
    async with running("--dev") as daemon:
        assert daemon.endpoint.startswith(f"unix:{directory}/dssd-")
        assert await health(daemon.endpoint) == SERVING
        assert await daemon.stop() == ExitCode.OK
    assert names_in(directory) == []


async def test_dev_leaves_no_directory_behind_where_the_disk_fails(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(directory))
    async with (
        running("--dev", program=(BROKEN_DAEMON, "disk")) as daemon,
        connected(daemon.endpoint) as stubs,
    ):
        await stubs.topics.Create(topics_pb2.CreateTopicRequest(name="orders", partitions=1))
        record = types_pb2.Record(payload=b"x")
        with pytest.raises(grpc.aio.AioRpcError):
            await stubs.log.Publish(log_pb2.PublishRequest(topic="orders", records=[record]))
        assert await daemon.wait() == ExitCode.IO_ERROR
    assert names_in(directory) == []


async def test_it_takes_all_the_descriptors_that_it_may(directory: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, soft), hard))
    try:
        async with running("--data-dir", str(directory)) as daemon:
            limits = resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE)
            assert limits == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_dev_and_a_data_directory_exclude_each_other(directory: Path) -> None:
    ended = await refused("--dev", "--data-dir", str(directory))
    assert ended.exit_code == ExitCode.USAGE


def test_version_needs_nothing_else() -> None:
    asked = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "dssd", "version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert asked.stdout.startswith("dssd ")
    assert " grpc" not in asked.stderr
    assert "pyarrow" not in asked.stderr


async def test_a_frozen_client_is_cut(daemon: DaemonProcess, directory: Path) -> None:
    """A peer that does not answer pings loses its connection: 2 s and 3 s, then it is gone."""
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_UNIX) as mute:
        mute.setblocking(False)
        await loop.sock_connect(mute, f"{directory}/dssd.sock")
        # This makes it a connection, which answers nothing from then on.
        await loop.sock_sendall(mute, HTTP2_PREFACE + HTTP2_EMPTY_SETTINGS)
        began = time.monotonic()
        async with asyncio.timeout(12):
            while await loop.sock_recv(mute, 4_096):
                pass
        assert 2 < time.monotonic() - began < 8
