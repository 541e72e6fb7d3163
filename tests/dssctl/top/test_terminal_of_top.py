"""The dashboard on a real terminal, over a daemon that comes, changes, dies and comes back."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import dss_client
from dss_client.changes import CreateJob
from dssctl.top.feed.recording import recorded
from dssctl.top.model.picture import Picture, step
from support.daemon_process import short_directory
from support.dssctl_call import environment
from support.revived_daemon import revived
from support.tmux_terminal import TmuxTerminal, terminal

SIZE = (100, 30)


@pytest.fixture
def folder() -> Iterator[Path]:
    with short_directory() as directory:
        yield directory


async def filled(endpoint: str) -> None:
    """A topic with records, and a group that has not read them."""
    async with dss_client.connect(endpoint=endpoint) as client:
        await client.topics.create("orders", partitions=1)
        await client.groups.create("$share/billing/orders/#", start="earliest")
        async with client.producer("orders") as producer:
            await producer.send(b'{"id": 7, "total": 12.50}', key=b"ada")
            await producer.send(b"text \x1b[2J", key=b"ben")
        change = CreateJob("again", "replay", source="orders", target="orders", allow_loop=True)
        await client.operations.apply(await client.operations.plan(change))


def shown(screen: TmuxTerminal, *arguments: str) -> None:
    """Run the dashboard."""
    screen.run([sys.executable, "-m", "dssctl", "top", *arguments], SIZE, environment())


@pytest.mark.slow("a real terminal, and two lives of a daemon")
async def test_it_shows_a_daemon_changes_it_and_outlives_it(folder: Path) -> None:
    path = str(folder / "recording")
    with terminal(folder / "live") as screen:
        async with revived() as daemon:
            await filled(daemon.endpoint)
            shown(screen, "--endpoint", daemon.endpoint, "--record", path)
            await asyncio.to_thread(look_around_and_pause, screen)
            await daemon.kill()
            screen.until("the daemon is away since", "held up by paused")
            await daemon.start()
            screen.until("1 group paused", gone="away since")
        screen.keys("C-q")
        assert screen.ended() == 0
        assert "dssctl groups pause 'billing@orders/#'" in screen.printed
        assert "dssctl jobs pause again" in screen.printed
    picture = Picture()
    for _, told in recorded(path):
        picture = step(picture, told)
    assert picture.items.groups["billing@orders/#"].paused
    assert picture.items.jobs["again"].state == "paused"


def look_around_and_pause(screen: TmuxTerminal) -> None:
    screen.until("\u25b6billing", "1 group stuck: see :stuck", "REC")
    screen.keys("Enter")
    screen.until("[1 Streams]", "\u25b6orders/0/0")
    screen.keys("Enter")
    screen.until("PAYLOAD", "text \\x1b[2J")
    screen.keys("Enter")
    screen.until('"total": 12.50')
    screen.keys("Escape")
    screen.typed(":groups\r")
    screen.until("Pulse \u203a Groups")
    screen.typed("P")
    screen.until("Cancel", "dssctl groups pause --if-revision")
    screen.keys("Right", "Enter")
    # A notice goes after some seconds, so it is awaited alone.
    screen.until("undo: dssctl ops undo")
    screen.until("1 group paused")
    screen.typed(":jobs\r")
    screen.until("\u25b6again", "0/1", "no driver yet")
    screen.keys("Enter")
    screen.until("[1 Chunks]", "held up by no driver yet", "orders/0/0 0..1")
    screen.typed("P")
    screen.until("Cancel", "dssctl jobs pause --if-revision")
    screen.keys("Right", "Enter")
    screen.until("held up by paused")


@pytest.mark.slow("a real terminal")
def test_a_recording_is_shown_without_a_daemon(folder: Path) -> None:
    from dssctl.top.feed.recording import Recorder
    from support.dashboard_items import busy

    path = str(folder / "recording")
    seconds = iter(range(1_000_000, 2_000_000, 10))
    recorder = Recorder(path, lambda: next(seconds))
    for told in busy(20):
        recorder.write(told)
    recorder.close()
    with terminal(folder / "replay") as screen:
        shown(screen, "--replay", path, "--ascii", "groups")
        screen.until("RECORDING 1970-01-01T00:16:40Z", ">payments-settle", "the end")
        screen.typed("P")
        screen.until("this dashboard is read-only")
        screen.keys("C-z")
        screen.until(gone="payments-settle")
        screen.wake()
        screen.until("RECORDING", ">payments-settle", "the end", "? help")
        screen.keys("C-c")
        assert screen.ended() == 130
