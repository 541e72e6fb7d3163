"""The processes of the demo: a daemon that may be killed and started again, and its consumers.

Invariant: none of them outlives the block that it was started for.
"""

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from demo_report import DemoFailedError

import dss_client

CONSUMER = Path(__file__).resolve().parent / "demo_consumer.py"
STEP_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 15.0
POLL_S = 0.05


@dataclass(slots=True)
class Member:
    """A consumer process, and what it has reported."""

    name: str
    results: Path
    process: asyncio.subprocess.Process
    streams: dict[str, float] = field(default_factory=dict)
    """Those that it reads, with when it was told so."""
    working: asyncio.Event = field(default_factory=asyncio.Event)
    """It holds a stream."""
    holding: asyncio.Event = field(default_factory=asyncio.Event)
    """It has stopped between writing out and acknowledging."""
    held: Mapping[str, object] = field(default_factory=dict)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    """Somebody of its group has reported something."""

    async def listen(self) -> None:
        """Follow its reports until it ends."""
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            report = json.loads(line)
            match report["event"]:
                case "granted":
                    self.streams[report["stream"]] = report["at_s"]
                    self.working.set()
                case "revoked":
                    self.streams.pop(report["stream"], None)
                case "holding":
                    self.held = report
                    self.holding.set()
            self.news.set()


class Daemon:
    """A daemon with its data in the directory."""

    def __init__(self, directory: Path) -> None:
        self.endpoint = f"unix:{directory / 'dssd.sock'}"
        self._data = directory / "data"
        self._log = directory / "dssd.log"
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start it, for the first time or again, and wait for its first answer."""
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "dssd", "serve"),
                *("--data-dir", str(self._data), "--listen", self.endpoint),
                stdout=log,
                stderr=log,
                # Ctrl-C reaches the script alone, which then stops the others in order.
                start_new_session=True,
            )
        try:
            await within(self._until_it_answers(self._process), "the daemon did not start")
        except DemoFailedError as failure:
            raise DemoFailedError(f"{failure}:\n{self._log.read_text()}") from failure

    async def kill(self) -> None:
        """End it as a crash does."""
        assert self._process is not None
        self._process.kill()
        await self._process.wait()

    async def stop(self) -> None:
        """End it in order."""
        if self._process is not None:
            await stop(self._process)

    async def _until_it_answers(self, process: asyncio.subprocess.Process) -> None:
        async with dss_client.connect(endpoint=self.endpoint) as client:
            while process.returncode is None:
                try:
                    await client.daemon.status()
                except dss_client.DssError:
                    await asyncio.sleep(POLL_S)
                else:
                    return
        raise DemoFailedError(f"the daemon ended with {process.returncode}")


@asynccontextmanager
async def daemon(directory: Path) -> AsyncIterator[Daemon]:
    """A daemon that is stopped at the end of the block."""
    made = Daemon(directory)
    try:
        await made.start()
        yield made
    finally:
        await made.stop()


@asynccontextmanager
async def members(
    names: Sequence[str], directory: Path, endpoint: str, held_after: Mapping[str, int]
) -> AsyncIterator[Mapping[str, Member]]:
    """Consumer processes, by name; one that is to hold records does so after so many."""
    group: dict[str, Member] = {}
    news = asyncio.Event()
    try:
        async with asyncio.TaskGroup() as tasks:
            for name in names:
                hold = (str(held_after[name]),) if name in held_after else ()
                results = directory / f"{name}.csv"
                results.touch()
                process = await asyncio.create_subprocess_exec(
                    *(sys.executable, str(CONSUMER), endpoint, name, str(results), *hold),
                    stdout=asyncio.subprocess.PIPE,
                    start_new_session=True,
                )
                group[name] = Member(name, results, process, news=news)
                tasks.create_task(group[name].listen(), name=f"listen to {name}")
            try:
                yield group
            finally:
                for member in group.values():
                    await stop(member.process)
    finally:
        for member in group.values():
            await stop(member.process)


async def stop(process: asyncio.subprocess.Process) -> int:
    """End a process, with SIGKILL if it takes too long, and return its exit code."""
    if process.returncode is None:
        process.terminate()
        try:
            async with asyncio.timeout(STOP_TIMEOUT_S):
                await process.wait()
        except TimeoutError:
            process.kill()
    return await process.wait()


async def within(waiting: Awaitable[object], otherwise: str) -> None:
    """Wait, but not for ever."""
    try:
        async with asyncio.timeout(STEP_TIMEOUT_S):
            await waiting
    except TimeoutError as late:
        raise DemoFailedError(f"{otherwise} within {STEP_TIMEOUT_S:g} s") from late


def short_temporary_folder() -> str | None:
    """A unix socket's path is bounded, so a deep TMPDIR will not do."""
    usual = tempfile.gettempdir()
    return usual if len(usual) < 60 else "/tmp"
