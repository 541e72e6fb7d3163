"""Backups and restores that are struck at one of their system calls, and what is left then.

Whatever is struck, a daemon, the tool or a restore, these must hold. The data directory is sound
and has everything that was acknowledged. A backup in its directory is complete, or not listed. A
restored directory is complete, or no daemon starts on it. The same command, run again, succeeds and
cleans up.
"""

import asyncio
import re
import shutil
import signal
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import dss_client
from dss_client import Client
from dss_client.backups import MadeBackup
from dss_client.changes import RunTask
from dss_core.backups.directory import MANIFESTS, MARKER, BackupDirectory
from dss_core.errors import BackupUnderWay, DssError
from dssd.backups.restore import restore
from dssd.backups.verify import verified
from dssd.data_directory import FORMAT_NAME, SNAPSHOT_NAME, DataDirectory
from support import syscall_faults
from support.client_trial import done_before
from support.daemon_process import DaemonProcess, running, short_directory
from support.struck_trials import SMALL
from support.syscall_faults import CALLS, KILL, MISSED, Point, damage_in, data_in, serving

STEPS = (*CALLS, "link", "linkat", "unlinkat", "rmdir")
"""Calls that backups make in addition to those of a daemon."""
TOPIC = "orders"
RECORDS, RECORD_BYTES = 12, 8 << 10
"""A few segments of a small daemon."""
BY_TOOL, BY_TASK = "tool", "task"
"""Directories of backups, by who writes them."""
TOLD = re.compile(r"DSS(?!1156)\d{4}")
"""The code of a condition, except that of a failure of the tool itself."""
INCOMING = "incoming"
FILES = "files/"
ANY_FILE = f"{FILES}*"
INCOMING_MAX = 2
"""Several threads write the files of a backup, and calls are counted by thread."""
PATIENCE_S = 60.0
LOOK_AGAIN_S = 0.05
ALIKE_MAX = 8
"""How many calls of a kind on one file are struck: a store has hundreds of pages, which are written
between two syncs."""


@dataclass(slots=True)
class Sent:
    """The acknowledged records."""

    payloads: list[bytes] = field(default_factory=list)

    async def more(self, client: Client) -> None:
        """Send some."""
        async with client.producer(TOPIC) as producer:
            for _ in range(RECORDS):
                payload = b"%d" % len(self.payloads)
                await producer.send(payload.ljust(RECORD_BYTES), key=payload)
                self.payloads.append(payload)

    async def are_there(self, client: Client) -> bool:
        """Whether each of them can be read, and no others except those without an answer."""
        reading = client.read(f"{TOPIC}/#", start="earliest")
        found = {record.payload.strip() async for record in reading}
        return found >= set(self.payloads)


async def begun(client: Client, sent: Sent) -> None:
    """A topic with records of a few segments."""
    await client.topics.create(TOPIC, partitions=2)
    await sent.more(client)


def thinned(points: Sequence[Point]) -> list[Point]:
    """The first, the last and some between, of each kind of call on each file.

    Files named by checksums, which differ from run to run: only the first call of each kind.
    """
    points = list(dict.fromkeys(map(_by_any_name, points)))
    alike: defaultdict[tuple[str, str], list[Point]] = defaultdict(list)
    for point in points:
        if not point.path.endswith(INCOMING) or point.number <= INCOMING_MAX:
            alike[point.call, point.path].append(point)
    wanted: set[Point] = set()
    for members in alike.values():
        step = max(1, -(-len(members) // (ALIKE_MAX - 1)))
        wanted |= {*members[::step], members[-1]}
    return [point for point in points if point in wanted]


def _by_any_name(point: Point) -> Point:
    before, files, _ = point.path.rpartition(FILES)
    return Point(point.call, f"{before}{ANY_FILE}", 1) if files else point


def striking(point: Point, root: Path, fault: str, output: Path) -> list[str]:
    """The command that strikes a point; if the file's name varies, it strikes all files that it may
    be."""
    tracer = syscall_faults.injecting(point, root, fault, output)
    if point.path.endswith(ANY_FILE):
        files = root / point.path.removesuffix("/*")
        folders = [files / f"{each:02x}" for each in range(256)]
        for path in (*folders, *files.glob("*/*")):
            tracer += ["-P", str(path)]
    return tracer


async def task_ran(client: Client) -> None:
    """The daemon's own task wrote a backup."""
    row = await client.operations.apply(RunTask("backup", {}, None))
    assert (await client.operations.ended(row.number)).state == "done"


# What must hold of a directory of backups


def trouble_in(backups: Path) -> str:
    """What is wrong with a directory that was left in the middle; empty if nothing is."""
    if not (backups / MARKER).exists():
        return ""  # it was not begun
    source = BackupDirectory.existing(backups)
    if not source.manifest_paths():
        return ""
    return "; ".join(map(str, verified(backups, None, deep=False, told=_nothing).damage))


def left_over(backups: Path) -> set[str]:
    """Files in it that belong to no backup."""
    source = BackupDirectory.existing(backups)
    named = {source.path_of(each) for one in source.manifests() for each in one.files}
    return {
        str(path.relative_to(backups))
        for path in backups.rglob("*")
        if path.is_file()
        and path not in named
        and path.parent.name != MANIFESTS
        and path.name not in (MARKER, f"{MARKER}.new")
    }


async def goes_on(client: Client, backups: Path, into: Path) -> str:
    """What is wrong with the next backup, or with a restore of it."""
    last = _last(backups)
    made = await _made_next(client, backups)
    if made.manifest.number <= last:
        return f"backup {made.manifest.number} behind {last}"
    if trouble := trouble_in(backups):
        return f"behind it: {trouble}"
    if left := left_over(backups):
        return f"the next backup leaves {left}"
    await asyncio.to_thread(restore, backups, into)
    return str(damage_in(into) or "")


async def _made_next(client: Client, backups: Path) -> MadeBackup:
    """Make a backup, once the daemon has noticed that the last one has lost its reader."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            with suppress(BackupUnderWay):
                return await client.backups.create(backups)
            await asyncio.sleep(LOOK_AGAIN_S)


def _last(backups: Path) -> int:
    numbers = [int(path.stem) for path in (backups / MANIFESTS).glob("[0-9]*.json")]
    return max(numbers, default=0)


# The tool, struck as it makes a backup


@dataclass(frozen=True, slots=True)
class Struck:
    """How a command ended."""

    exit_code: int
    said: str

    def trouble(self, fault: str) -> str:
        """What is wrong with its end, unless it was killed as it should be."""
        if fault == KILL:
            killed = self.exit_code == -signal.SIGKILL
            return "" if killed else MISSED if self.exit_code == 0 else self.said
        if self.exit_code == 0:
            return MISSED
        told = TOLD.search(self.said) and "Traceback" not in self.said
        return "" if told else f"exit code {self.exit_code}: {self.said}"


async def executed(tracer: Sequence[str], *words: object) -> Struck:
    """Run ``python -m WORDS`` behind a tracer."""
    process = await asyncio.create_subprocess_exec(
        *tracer,
        sys.executable,
        "-m",
        *map(str, words),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await process.communicate()
    assert process.returncode is not None
    return Struck(process.returncode, said.decode(errors="replace"))


@asynccontextmanager
async def backed_up(home: Path) -> AsyncIterator[tuple[DaemonProcess, Client, Sent]]:
    """A daemon with a backup in the tool's directory, and records after it."""
    sent = Sent()
    arguments = serving(home, "first")
    async with (
        running(*arguments, program=SMALL, from_nothing=True) as daemon,
        dss_client.connect("c", endpoint=daemon.endpoint, patient=False) as client,
    ):
        await begun(client, sent)
        await client.backups.create(home / BY_TOOL)
        await sent.more(client)
        yield daemon, client, sent


@dataclass(frozen=True, slots=True)
class ToolTrial:
    """A command of the tool on a directory with a backup; the daemon survives."""

    words: tuple[str, ...]
    """Arguments of `dssctl`; the directory replaces ``DIR``."""

    def _command(self, daemon: DaemonProcess, backups: Path) -> list[object]:
        words = [str(backups) if word == "DIR" else word for word in self.words]
        return ["dssctl", "--endpoint", daemon.endpoint, *words]

    async def points(self) -> list[Point]:
        """The points at which it can be struck."""
        with short_directory() as home:
            async with backed_up(home) as (daemon, _, _):
                backups, output = home / BY_TOOL, home / "calls"
                tracer = syscall_faults.counting(output, STEPS)
                done = await executed(tracer, *self._command(daemon, backups))
                assert done.exit_code == 0, done.said
                return thinned(syscall_faults.points_in(output, backups, STEPS))

    async def struck_at(self, point: Point, fault: str) -> str:
        """Strike it at a point, and judge what it leaves."""
        with short_directory() as home:
            async with backed_up(home) as (daemon, client, sent):
                backups, output = home / BY_TOOL, home / "calls"
                tracer = striking(point, backups, fault, output)
                struck = await executed(tracer, *self._command(daemon, backups))
                if trouble := struck.trouble(fault) or trouble_in(backups):
                    return trouble
                await until_left(home)
                if trouble := await goes_on(client, backups, home / "restored"):
                    return trouble
                if not await sent.are_there(client):
                    return "records are lost"
                if await daemon.stop():
                    return daemon.said
            return str(damage_in(data_in(home)) or "")


async def until_left(home: Path) -> None:
    """Wait until the daemon has noticed that nobody makes the backup any more."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if not (data_in(home) / SNAPSHOT_NAME).exists():
                return
            await asyncio.sleep(0.001)


# A daemon, struck as backups are made of it


@dataclass(frozen=True, slots=True)
class DaemonTrial:
    """Backups by a client and by the daemon's own task, which also removes one."""

    async def points(self) -> list[Point]:
        """The points at which it can be struck: its calls for backups."""
        with short_directory() as home:
            output = home / "calls"
            tracer = syscall_faults.counting(output, STEPS)
            exit_code, said = await self._lived(home, Sent(), tracer)
            assert exit_code == 0, said
            points = syscall_faults.points_in(output, home, STEPS)
            return thinned([each for each in points if _is_of_backups(each)])

    async def killed_at(self, point: Point) -> str:
        """Kill it at a point, and judge the next daemon."""
        with short_directory() as home:
            sent = Sent()
            tracer = striking(point, home, KILL, home / "calls")
            exit_code, said = await self._lived(home, sent, tracer)
            if exit_code != -signal.SIGKILL:
                return MISSED if exit_code == 0 else f"exit code {exit_code}: {said}"
            if damage := damage_in(data_in(home)):
                return f"damage: {damage}"
            for name in (BY_TOOL, BY_TASK):
                if trouble := trouble_in(home / name):
                    return f"{name}: {trouble}"
            return await self._next(home, sent)

    async def _next(self, home: Path, sent: Sent) -> str:
        async with (
            running(*_arguments(home, "next")) as daemon,
            dss_client.connect("c", endpoint=daemon.endpoint) as client,
        ):
            if (data_in(home) / SNAPSHOT_NAME).exists():
                return "a start leaves the snapshot of before"
            if not await sent.are_there(client):
                return "records are lost"
            await task_ran(client)
            for name in (BY_TOOL, BY_TASK):
                if trouble := await goes_on(client, home / name, home / f"of {name}"):
                    return f"{name}: {trouble}"
            return "" if await daemon.stop() == 0 else daemon.said

    async def _lived(self, home: Path, sent: Sent, tracer: Sequence[str]) -> tuple[int, str]:
        daemon = await DaemonProcess.start(*_arguments(home, "first"), program=SMALL, tracer=tracer)
        try:
            work = done_before(_backups(daemon.endpoint, home, sent), daemon.wait())
            exit_code = await (daemon.stop() if await work else daemon.wait())
            return exit_code, daemon.said
        finally:
            await daemon.kill()


def _arguments(home: Path, life: str) -> tuple[str, ...]:
    config = home / "dssd.toml"
    config.write_text(f'[backup]\ndirectory = "{home / BY_TASK}"\nkeep = 1\n')
    return (*serving(home, life), "--config", str(config))


async def _backups(endpoint: str, home: Path, sent: Sent) -> None:
    async with dss_client.connect("c", endpoint=endpoint, patient=False) as client:
        await begun(client, sent)
        await client.backups.create(home / BY_TOOL)
        await task_ran(client)
        await sent.more(client)
        await task_ran(client)


def _is_of_backups(point: Point) -> bool:
    return point.path.startswith((f"data/{SNAPSHOT_NAME}", BY_TASK))


# A restore


@dataclass(frozen=True, slots=True)
class RestoreTrial:
    """A restore of a backup, each into a directory of its own."""

    backups: Path

    async def points(self) -> list[Point]:
        """The points at which it can be struck."""
        with short_directory() as home:
            tracer = syscall_faults.counting(home / "calls", STEPS)
            done = await self._restored(home / "new", tracer)
            assert done.exit_code == 0, done.said
            return thinned(syscall_faults.points_in(home / "calls", home / "new", STEPS))

    async def struck_at(self, point: Point, fault: str) -> str:
        """Strike it at a point, and judge what it leaves, and a second restore."""
        with short_directory() as home, unchanged(self.backups):
            new = home / "new"
            tracer = syscall_faults.injecting(point, new, fault, home / "calls")
            struck = await self._restored(new, tracer)
            if trouble := struck.trouble(fault):
                return trouble
            if not (new / FORMAT_NAME).exists():
                if trouble := _trouble_of_half(new):
                    return trouble
                again = await self._restored(new, ())
                if again.exit_code:
                    return f"the second one: {again.said}"
            if damage := damage_in(new):
                return f"damage: {damage}"
            async with (
                running("--data-dir", str(new)) as daemon,
                dss_client.connect("c", endpoint=daemon.endpoint) as client,
            ):
                restores = (await client.daemon.status()).restores
                return "" if restores == 1 else f"it counts {restores} restores"

    async def _restored(self, new: Path, tracer: Sequence[str]) -> Struck:
        return await executed(tracer, "dssd", "restore", self.backups, "--into", new)


def _trouble_of_half(new: Path) -> str:
    """A daemon must refuse half a restore as its data."""
    if not new.exists() or not any(new.iterdir()):
        return ""
    copy = new.with_name("copy")
    shutil.copytree(new, copy)
    try:
        DataDirectory(copy)
    except DssError:
        return ""
    finally:
        shutil.rmtree(copy)
    return f"a daemon would begin on {sorted(each.name for each in new.iterdir())}"


@contextmanager
def unchanged(folder: Path) -> Iterator[None]:
    """Check that nothing in it has changed when the block ends."""
    before = _content(folder)
    yield
    assert _content(folder) == before


def _content(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _nothing(_: int) -> None:
    """Ignore the progress."""
