"""A replay under faults: daemon and driver as processes that can be stopped, and its result.

Invariant: the judge looks at the contents of the target and the directories, never at answers. The
records of a published chunk of the manifest must be there exactly once, all others not at all.
"""

import asyncio
import os
import signal
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import dss_client
from dss_bulk.driver import drive
from dss_bulk.local_engine import LOCAL
from dss_client import Client, Job
from dss_client.changes import CreateJob
from dss_core.errors import JobLeased
from dss_core.origin import ORIGIN
from support.bulk_jobs import read_chunk
from support.daemon_process import DaemonProcess, short_directory
from support.proof_share import FULL
from support.started_program import StartedProgram, started

PROGRAMS = Path(__file__).parents[1] / "scenarios" / "programs"
JOB = "copy"
RECORDS = 600
KEYS = 23
FLUSHED_AFTER = 40
"""So that the source has many frames, and files that retention may take."""
CHUNK_BYTES = 64 << 10
LOOK_S = 0.01
PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the target holds after a fault."""

    state: str
    chunks: int
    published: int
    records: int
    """Copies in the target."""
    missing: int
    doubled: int
    out_of_order: int
    """Keys whose copies are not in the order of the source."""
    files_left: int

    @property
    def is_clean(self) -> bool:
        """Whether each published record is there once, in order, and no file is left."""
        return not (self.missing or self.doubled or self.out_of_order or self.files_left)

    def row(self) -> str:
        """The verdict as a row of a table."""
        return " | ".join(str(each) for each in astuple(self))

    @classmethod
    def head(cls) -> str:
        """Of that table."""
        return " | ".join(field.name.replace("_", " ") for field in fields(cls))


Rows = dict[str, Verdict]
"""The results, one for each fault."""


@contextmanager
def table_of_faults(path: Path) -> Iterator[Rows]:
    """Collects the results; at the end of a full proof it writes them to a file as a table."""
    rows: Rows = {}
    yield rows
    if FULL:
        lines = [
            f"| fault | {Verdict.head()} |",
            "|---" * (len(Verdict.head().split("|")) + 1) + "|",
        ]
        lines += [f"| {fault} | {verdict.row()} |" for fault, verdict in rows.items()]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n")


@dataclass(slots=True)
class Scene:
    """A daemon that can be stopped at a point, and a job on it."""

    folder: Path
    data: Path
    point: str
    call: int
    daemon: DaemonProcess
    client: Client
    planned: Mapping[int, frozenset[int]]
    """The records of each chunk."""

    # The daemon

    async def reached(self) -> None:
        """Return once the daemon stands at its point."""
        while not (self.folder / "reached").exists():  # noqa: ASYNC110 - a file tells nobody
            await asyncio.sleep(LOOK_S)

    def go_on(self) -> None:
        """Let it continue."""
        (self.folder / "go").touch()

    async def kill_daemon(self) -> None:
        """SIGKILL it, and begin its next life."""
        await self.daemon.kill()
        self.daemon = await _started(self.folder, self.data, self.point, self.call)

    # Drivers

    @asynccontextmanager
    async def driver(self, phase: str = "committing", before: int = 1) -> "AsyncIterator[Driver]":
        """A driver that stops at a phase; killed at the end of the block."""
        program = str(PROGRAMS / "held_driver.py")
        endpoint = f"unix:{self.folder / 's'}"
        arguments = (program, phase, str(before), JOB, endpoint)
        process = await started(*arguments, pipes=["stdin", "stdout", "stderr"])
        driver = Driver(process)
        try:
            yield driver
        finally:
            driver.signal(signal.SIGKILL)
            await process.wait()

    async def drive_on(self) -> Job:
        """Drive the job to its end, as soon as no other driver has it."""
        while True:
            try:
                return await drive(self.client, JOB, engine=LOCAL)
            except JobLeased as leased:
                await asyncio.sleep(int(leased.fields["left_ms"]) / 1_000)

    # What came of it

    async def job(self) -> Job:
        """The job as it is now."""
        return await self.client.jobs.get(JOB)

    async def verdict(self) -> Verdict:
        """The verdict on the present state; the daemon gets some seconds to sweep files."""
        job = await self.job()
        published = [each async for each in self.client.jobs.chunks(JOB) if each.result]
        wanted = {number for each in published for number in self.planned[each.number]}
        copies = [each async for each in self.client.read("copies/#")]
        there = Counter(number_of(each.payload) for each in copies)
        assert len({each.header(ORIGIN) for each in copies}) == len(there)
        by_key: defaultdict[bytes | None, list[int]] = defaultdict(list)
        for each in copies:
            by_key[each.key].append(number_of(each.payload))
        with suppress(TimeoutError):
            async with asyncio.timeout(60):
                while any(self.files()):  # noqa: ASYNC110 - a directory tells nobody
                    await asyncio.sleep(LOOK_S)
        return Verdict(
            state=job.state,
            chunks=job.chunks,
            published=job.published,
            records=len(copies),
            missing=len(wanted - there.keys()),
            doubled=len(there.keys() - wanted) + sum(each - 1 for each in there.values()),
            out_of_order=sum(own != sorted(own) for own in by_key.values()),
            files_left=sum(1 for _ in self.files()),
        )

    def files(self) -> Iterator[Path]:
        """Files that must not be left: staged files, copies, marks of copies."""
        # Folders may be removed during this walk, which `os.walk` tolerates.
        for folder, _, names in os.walk(self.data / "staging"):
            yield from (Path(folder, name) for name in names)
        log = (self.data / "log").iterdir()
        yield from (path for path in log if path.suffix in (".adopting", ".tmp"))

    async def tells(self, code: str) -> None:
        """Return once operators can see this about the job."""
        told: set[str] = set()
        while code not in told:
            await asyncio.sleep(LOOK_S)
            told = {event.code for event in (await self.client.events.list()).events}


@dataclass(frozen=True, slots=True)
class Driver:
    """A driver that stopped, or will."""

    process: StartedProgram

    async def stands(self) -> None:
        """Return once it has stopped at its phase."""
        assert self.process.stdout is not None
        phases = {b"acquiring\n", b"reading\n", b"staging\n", b"committing\n"}
        while (line := await self.process.stdout.readline()) not in phases:
            assert line, "it ended before"

    def go_on(self) -> None:
        """Let it continue."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")

    def signal(self, number: int) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    async def ended(self) -> tuple[int, str]:
        """Its exit code, and its stderr."""
        _, said = await self.process.communicate()
        return await self.process.wait(), said.decode()


def number_of(payload: bytes) -> int:
    """The number of a record."""
    return int(payload.split(b".")[0])


@asynccontextmanager
async def scene(
    point: str = "never",
    call: int = 1,
    *,
    data: Path | None = None,
    rate_bytes_s: int = 0,
    patience_s: float = PATIENCE_S,
    transform: str = "",
) -> AsyncIterator[Scene]:
    """A topic with records, one for copies with more partitions, and a job from one to the other.

    Args:
        point: where the daemon stops, see ``gated_daemon.py``.
        call: at which passage of the point.
        data: the data directory; by default one beside.
        rate_bytes_s: how fast the job may publish.
        patience_s: how long all of it may take.
        transform: params of the job if it is a transform, not a replay.
    """
    async with asyncio.timeout(patience_s):
        with short_directory() as folder:
            directory = data or folder / "data"
            daemon = await _started(folder, directory, point, call)
            made = None
            try:
                async with dss_client.connect(endpoint=f"unix:{folder / 's'}") as client:
                    planned = await _filled(client, rate_bytes_s, transform)
                    made = Scene(folder, directory, point, call, daemon, client, planned)
                    yield made
            finally:
                await (made.daemon if made else daemon).kill()


async def _started(folder: Path, data: Path, point: str, call: int) -> DaemonProcess:
    program = (str(PROGRAMS / "gated_daemon.py"), point, str(call), str(folder))
    arguments = ("--data-dir", str(data), "--listen", f"unix:{folder / 's'}")
    return await DaemonProcess.start(*arguments, program=program)


async def _filled(client: Client, rate_bytes_s: int, transform: str) -> dict[int, frozenset[int]]:
    await client.topics.create("orders", partitions=2)
    await client.topics.create("copies", partitions=5)
    async with client.producer("orders") as producer:
        for number in range(RECORDS):
            payload = b"%d" % number + b"." * 400
            producer.send_nowait(payload, key=b"k%d" % (number % KEYS))
            if number % FLUSHED_AFTER == FLUSHED_AFTER - 1:
                await producer.flush()
    change = CreateJob(
        JOB,
        "transform" if transform else "replay",
        source="orders",
        target="copies",
        chunk_bytes=CHUNK_BYTES,
        rate_bytes_s=rate_bytes_s,
        params=transform,
    )
    await client.operations.apply(await client.operations.plan(change), reason="a test")
    return {
        chunk.number: frozenset(number_of(each.payload) for each in await read_chunk(client, chunk))
        async for chunk in client.jobs.chunks(JOB)
    }
