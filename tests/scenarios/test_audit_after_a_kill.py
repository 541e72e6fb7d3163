"""What was answered is in the audit, however soon after the daemon is killed; so is the kill."""

from pathlib import Path

import pytest

import dss_client
from dss_client import changes
from dss_core.errors import GroupNotFound
from support.daemon_process import DaemonProcess, running, short_directory

GROUPS = 10


async def killed_at_once(directory: Path) -> None:
    """Change and refuse things, and kill the daemon with the last answer."""
    daemon = await DaemonProcess.start("--data-dir", str(directory))
    try:
        async with dss_client.connect(endpoint=daemon.endpoint) as client:
            await client.topics.create("orders", partitions=2)
            for number in range(GROUPS):
                await client.groups.create(f"$share/g{number}/orders/#")
            await client.groups.remove("g0")
            await client.operations.apply(changes.EditTopic("orders", retention_ms=7_200_000))
            with pytest.raises(GroupNotFound):
                await client.groups.remove("nobody")
            await daemon.kill()
    finally:
        await daemon.kill()


async def test_every_answered_call_and_operation_is_told_once_after_a_kill() -> None:
    with short_directory() as directory:
        async with running("--data-dir", str(directory)) as stopped:
            assert await stopped.stop() == 0
        await killed_at_once(directory)
        async with (
            running("--data-dir", str(directory)) as daemon,
            dss_client.connect(endpoint=daemon.endpoint) as client,
        ):
            events = (await client.events.list()).events
            assert (await client.daemon.status()).before == "killed"
            assert "after a kill, listening on" in daemon.said
    told = [(each.code, each.subject) for each in events if each.code.startswith("call.")]
    groups = [("call.done", f"$share/g{number}/orders/#") for number in range(GROUPS)]
    gone = [("call.done", "g0"), ("call.refused", "nobody")]
    assert told == [("call.done", "orders"), *groups, *gone]
    assert [each.code for each in events if each.code.startswith("operation.")] == [
        "operation.applied"
    ]
    lives = [each.code.removeprefix("daemon.") for each in events if each.subject == "daemon"]
    assert lives == ["started", "stopped", "started", "killed", "started"]
    assert [each.number for each in events] == list(range(1, len(events) + 1))
