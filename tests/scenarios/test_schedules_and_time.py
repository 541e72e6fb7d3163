"""Schedules of a real daemon that dies, was down, and whose clock is set."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

import dss_client
from dss_client import ScheduleRun
from dss_client.changes import CreateSchedule
from support.revived_daemon import RevivedDaemon, revived

PROGRAM = str(Path(__file__).parent / "programs" / "daemon_with_a_clock.py")
PATIENCE_S = 60.0
HOUR_MS = 3_600_000


class Life:
    """A daemon, its clock, and a client of it."""

    def __init__(self, daemon: RevivedDaemon, clock: Path) -> None:
        self.daemon = daemon
        self.clock = clock

    def set(self, moment: str) -> None:
        """Let the wall clock show this now."""
        ahead_s = datetime.fromisoformat(moment).timestamp() - time.time()
        staged = self.clock.with_suffix(".new")
        staged.write_text(str(int(ahead_s * 1_000)))
        staged.rename(self.clock)

    async def create(self, name: str, cron: str, **rules: object) -> None:
        """A schedule of the task ``checkpoint``."""
        async with dss_client.connect(endpoint=self.daemon.endpoint) as client:
            change = CreateSchedule(name, "checkpoint", cron, **rules)  # type: ignore[arg-type] # of a schedule
            await client.operations.apply(change)

    async def runs(self, name: str) -> list[ScheduleRun]:
        """The runs that are kept, the oldest first."""
        async with dss_client.connect(endpoint=self.daemon.endpoint) as client:
            return list((await client.schedules.describe(name)).runs)[::-1]

    async def until(self, name: str, *states: str) -> list[ScheduleRun]:
        """The runs, once they are in these states."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                runs = await self.runs(name)
                if [run.state for run in runs] == list(states):
                    return runs
                await asyncio.sleep(0.02)


@asynccontextmanager
async def life(directory: Path, moment: str) -> AsyncIterator[Life]:
    clock = directory / "clock"
    clock.write_text("0")
    os.environ["DSS_TEST_CLOCK"] = str(clock)
    try:
        async with revived(program=(PROGRAM,)) as daemon:
            made = Life(daemon, clock)
            made.set(moment)
            yield made
    finally:
        del os.environ["DSS_TEST_CLOCK"]


def at(moment: str) -> int:
    return int(datetime.fromisoformat(moment).timestamp() * 1_000)


async def test_a_night_in_which_the_clock_is_moved_has_one_run_and_a_wrong_clock_stops_nothing(
    tmp_path: Path,
) -> None:
    async with life(tmp_path, "2026-03-29T01:59:00+01:00") as daemon:
        await daemon.create("spring", "30 2 * * *", time_zone="Europe/Berlin")
        daemon.set("2026-03-29T03:00:05+02:00")
        [run] = await daemon.until("spring", "done")
        assert run.due_at_ms == at("2026-03-29T03:00:00+02:00")
        daemon.set("2026-10-25T02:29:59+02:00")
        await daemon.create("autumn", "30 2 * * *", time_zone="Europe/Berlin")
        [run] = await daemon.until("autumn", "done")
        assert run.due_at_ms == at("2026-10-25T02:30:00+02:00")
        daemon.set("2026-10-25T02:30:05+01:00")
        await daemon.create("after", "* * * * *")
        daemon.set("2026-10-25T02:31:05+01:00")
        await daemon.until("after", "done")
        assert len(await daemon.runs("autumn")) == 1
        # Set back by years, it goes on from there.
        daemon.set("2020-01-01T00:00:30+00:00")
        await daemon.create("before", "* * * * *")
        daemon.set("2020-01-01T00:01:01+00:00")
        await daemon.until("before", "done")
        *_, run = await daemon.until("after", "done", "done")
        assert run.due_at_ms == at("2020-01-01T00:01:00+00:00")


async def test_a_daemon_that_was_killed_and_was_down_catches_up_one_run(tmp_path: Path) -> None:
    async with life(tmp_path, "2026-06-01T12:30:00+00:00") as daemon:
        await daemon.create("hourly", "0 * * * *", catch_up_ms=HOUR_MS)
        await daemon.create("strict", "0 * * * *", catch_up_ms=0)
        await daemon.daemon.kill()
        daemon.set("2026-06-01T16:20:00+00:00")
        await daemon.daemon.start()
        skipped, run = await daemon.until("hourly", "skipped", "done")
        assert (skipped.count, run.cause) == (3, "catch-up")
        assert run.due_at_ms == at("2026-06-01T16:00:00+00:00")
        [skipped] = await daemon.until("strict", "skipped")
        assert skipped.count == 4
        assert len(await daemon.runs("hourly")) == 2, "nothing is decided twice"


async def test_a_run_that_a_kill_interrupts_is_told_and_tried_again(tmp_path: Path) -> None:
    async with life(tmp_path, "2026-06-01T12:30:00+00:00") as daemon:
        endpoint = daemon.daemon.endpoint
        async with dss_client.connect(endpoint=endpoint) as client:
            await client.topics.create("orders", partitions=1)
            await client.groups.create("$share/billing/orders/#", start="earliest")
            async with client.producer("orders") as producer:
                producer.send_nowait(b"one")
            hooks = Path((await client.daemon.status()).data_dir) / "hooks"
            hooks.mkdir()
            (hooks / "wait").write_text(f"#!/bin/sh\ntouch {tmp_path}/began\nsleep 5\n")
            (hooks / "wait").chmod(0o700)
            change = CreateSchedule(
                "page", "lag-check", "@daily", {"max-lag": "0", "hook": "wait"}, retries=1
            )
            await client.operations.apply(change)
            await client.schedules.trigger("page")
            async with asyncio.timeout(PATIENCE_S):
                while not (tmp_path / "began").exists():  # noqa: ASYNC110 - files tell nobody
                    await asyncio.sleep(0.02)
        (hooks / "wait").write_text("#!/bin/sh\nexit 0\n")
        await daemon.daemon.revive()
        [run] = await daemon.until("page", "retrying")
        assert (run.attempt, run.failure) == (2, "the daemon ended while it ran")
        async with dss_client.connect(endpoint=endpoint) as client:
            operation = await client.operations.get(run.operation)
        assert (operation.state, operation.principal) == ("failed", "schedule:page")
