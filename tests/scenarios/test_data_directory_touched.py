"""Somebody tidies up in the data directory of a daemon that serves."""

import asyncio
from pathlib import Path

import pytest

from dss_api.v1 import events_pb2, topics_pb2
from dss_core.default_paths import OPERATORS_SOCKET_NAME
from dss_core.errors import ExitCode
from dssd.events.kinds import LOCK_REMOVED, SOCKET_REMOVED
from dssd.lock import LOCK_NAME
from support.daemon_process import DaemonEnded, DaemonProcess, running, short_directory
from support.raw_stubs import Stubs, connected

PATIENCE_S = 30.0
SOCKETS = ("dssd.sock", OPERATORS_SOCKET_NAME)


async def create(stubs: Stubs, name: str) -> None:
    await stubs.topics.Create(topics_pb2.CreateTopicRequest(name=name, partitions=1))


async def topics_at(endpoint: str) -> set[str]:
    async with connected(endpoint) as stubs:
        listed = await stubs.topics.List(topics_pb2.ListTopicsRequest())
        return {each.topic.name for each in listed.topics}


async def refused(data: Path, where: Path) -> DaemonEnded:
    with pytest.raises(DaemonEnded) as ended:
        await DaemonProcess.start("--data-dir", str(data), "--listen", f"unix:{where}")
    return ended.value


async def test_a_directory_that_is_tidied_up_and_moved_keeps_all() -> None:
    with short_directory() as directory:
        data, moved = directory / "data", directory / "moved"
        async with running("--data-dir", str(data)) as daemon:
            async with connected(daemon.endpoint) as stubs:
                await create(stubs, "first")
                (data / LOCK_NAME).unlink()
                second = await refused(data, directory / "second")
                assert second.exit_code == ExitCode.LOCKED
                assert "DSS5005" in second.said
                # The file is made anew within a second, and that is told.
                watched = events_pb2.WatchEventsRequest(after_number=0, codes=[LOCK_REMOVED.code])
                async with asyncio.timeout(PATIENCE_S):
                    event = await anext(aiter(stubs.events.Watch(watched)))
                assert event.subject == str(data)
                assert (data / LOCK_NAME).exists()
                for name in SOCKETS:
                    (data / name).unlink()
                back = events_pb2.WatchEventsRequest(after_number=0, codes=[SOCKET_REMOVED.code])
                async with asyncio.timeout(PATIENCE_S):
                    told = aiter(stubs.events.Watch(back))
                    subjects = {(await anext(told)).subject for _ in SOCKETS}
                assert subjects == {f"unix:{data / name}" for name in SOCKETS}
                # Who comes anew gets in.
                assert await topics_at(daemon.endpoint) == {"first"}
                await create(stubs, "later")
                data.rename(moved)
                data.mkdir()
            # Not even a stop writes by name into what is there now.
            assert await daemon.stop() == ExitCode.IO_ERROR
            assert "DSS5020" in daemon.said
            assert "put those back" in daemon.said
            assert "Traceback" not in daemon.said
            assert not list(data.iterdir())
        async with running("--data-dir", str(moved)) as daemon:
            assert await topics_at(daemon.endpoint) == {"first", "later"}
            assert await daemon.stop() == 0
