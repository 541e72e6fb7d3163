"""Spark as processes: submitted drivers, and a standalone cluster from the PySpark package.

Invariant: what was started is ended with its block, whatever it has started itself.
"""

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

LOOK_S = 0.05
PATIENCE_S = 1_500.0
"""A JVM starts in three seconds, and in minutes beside much else."""
_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = "egistered with master"


@dataclass(frozen=True, slots=True)
class Submitted:
    """A driver that was submitted."""

    process: asyncio.subprocess.Process
    folder: Path
    log: Path

    async def ended(self) -> int:
        """Its exit code."""
        return await self.process.wait()

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self.process.returncode is None

    def said(self) -> str:
        """All that it and Spark said."""
        return self.log.read_text()

    def processes(self) -> Iterator[int]:
        """The processes below it, the youngest last."""
        yield from sorted(_below(self.process.pid))

    def signal_spark(self, number: int) -> None:
        """A signal to the JVM, to the driver in it and to its workers."""
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill_spark(self) -> None:
        """SIGKILL to all of them."""
        self.signal_spark(signal.SIGKILL)


@asynccontextmanager
async def submitted(
    job: str,
    endpoint: str,
    folder: Path,
    master: str = "local[2]",
    conf: Sequence[str] = (),
    python: Path | None = None,
    environment: Mapping[str, str] = MappingProxyType({}),
    enter: Sequence[str] = (),
) -> AsyncIterator[Submitted]:
    """A driver of a job, as `dssctl` starts it; tasks run in another Python, if one is named. A
    command in front may bring it to another network, and has to become that process.
    """
    own = {} if python is None else {"PYSPARK_PYTHON": str(python)}
    options = [word for each in conf for word in ("--conf", each)]
    command = ["-m", "dss_spark", job, "--endpoint", endpoint, "--master", master, *options]
    log = folder / f"{job}.log"
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            *enter, sys.executable, *command, "--folder", str(folder / f"{job}.spark"),
            stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=output,
            env={**os.environ, **own, **environment},
        )  # fmt: skip
    driver = Submitted(process, folder / f"{job}.spark", log)
    try:
        yield driver
    finally:
        driver.kill_spark()
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


@asynccontextmanager
async def cluster(folder: Path, hosts: Sequence[str]) -> AsyncIterator[str]:
    """A master with one worker of one core a host; the master's address."""
    import pyspark

    program = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
    started: list[asyncio.subprocess.Process] = []

    async def start(name: str, *arguments: str) -> Path:
        log = folder / f"{name}.log"
        environment = {
            **os.environ,
            "SPARK_LOCAL_DIRS": str(folder / name),
            "SPARK_WORKER_DIR": str(folder / name),
            "PYSPARK_PYTHON": sys.executable,
        }
        with log.open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                program, f"org.apache.spark.deploy.{arguments[0]}", *arguments[1:],
                stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=output, env=environment,
            )  # fmt: skip
        started.append(process)
        return log

    try:
        places = ("--port", "0", "--webui-port", "0")
        log = await start("master", "master.Master", "--host", "127.0.0.1", *places)
        master = (await _said(log, _MASTER))[1]
        for host in hosts:
            one = ("--cores", "1", "--memory", "1g", "--host", host, *places, master)
            log = await start(f"worker-{host}", "worker.Worker", *one)
            await _said(log, re.compile(_REGISTERED))
        yield master
    finally:
        for process in started:
            for pid in (*_below(process.pid), process.pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            await process.wait()


async def _said(log: Path, wanted: re.Pattern[str]) -> re.Match[str]:
    while (found := wanted.search(log.read_text())) is None:  # noqa: ASYNC110, ASYNC240 - a log
        await asyncio.sleep(LOOK_S)
    return found


async def gone(pid: int) -> None:
    """Return once a process has ended."""
    while _parent(Path(f"/proc/{pid}/stat")) is not None:  # noqa: ASYNC110 - no child of ours
        await asyncio.sleep(LOOK_S)


def parent_of(pid: int) -> int:
    """The process that started one that runs."""
    parent = _parent(Path(f"/proc/{pid}/stat"))
    assert parent is not None, "it runs"
    return parent


def command_of(pid: int) -> str:
    """The command line of a process."""
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()


def _below(pid: int) -> list[int]:
    """The processes that a process has started, and those that these have."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        if (parent := _parent(stat)) is not None:
            children.setdefault(parent, []).append(int(stat.parent.name))
    found, left = [], [pid]
    while left:
        own = children.get(left.pop(), [])
        found += own
        left += own
    return found


def _parent(stat: Path) -> int | None:
    """Of a process; none where it has ended, also where nobody has waited for it."""
    try:
        state, parent = stat.read_text().rpartition(")")[2].split()[:2]
    except OSError:
        return None
    return None if state == "Z" else int(parent)
