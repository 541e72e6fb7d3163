"""A real daemon, started by something that listens as systemd does."""

import asyncio
import socket
from pathlib import Path

import pytest

from support.daemon_process import DaemonProcess

TOLD_S_MAX = 60


async def test_a_daemon_tells_its_manager_from_its_start_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", manager.getsockname())
        monkeypatch.setenv("WATCHDOG_USEC", "300000")
        daemon = await DaemonProcess.start("--dev", from_nothing=True)

        async def told() -> str:
            async with asyncio.timeout(TOLD_S_MAX):
                return (await asyncio.get_running_loop().sock_recv(manager, 999)).decode()

        assert await told() == "READY=1\nSTATUS=serving"
        for _ in range(3):
            assert await told() == (
                "WATCHDOG=1\nSTATUS=serving: 0 topics, 0 groups, 0 connected sessions"
            )
        assert await daemon.stop() == 0
        while (last := await told()).startswith("WATCHDOG=1"):
            pass
        assert last == "STOPPING=1\nSTATUS=stopping"
