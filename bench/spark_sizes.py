"""How time and memory of a replay on Spark grow: ``bench/spark_sizes.py 1000000 10000000``.

For each number of records a daemon of its own, and a driver as `dssctl` starts it. A line of JSON
each: from the first look at the manifest to the end, processor time of all processes with the start
of Spark, and the most that was held at once. Memory that processes share is counted once.
"""

import asyncio
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import bulk
from processes import BenchError, Process, running_daemon, within
from processor_time import below, own_s, tree_s
from workload import PARTITIONS, TOPIC

import dss_client

DRIVEN_SECONDS_MAX = 7_200.0
LOOK_S = 0.5
JOB = "all"


@dataclass(slots=True)
class Most:
    """What was held at most, in MiB, and what was spent so far."""

    jvm_mib: float = 0.0
    python_mib: float = 0.0
    """Of what submits, drives and works, together."""
    daemon_mib: float = 0.0
    cpu_s: float = 0.0

    def look(self, driver: int, daemon: int) -> None:
        """Look at all processes."""
        jvm = python = 0.0
        for pid in below(driver):
            with _may_have_ended():
                held = _held_mib(pid)
                if Path(f"/proc/{pid}/comm").read_text() == "java\n":
                    jvm += held
                else:
                    python += held
        self.jvm_mib = max(self.jvm_mib, jvm)
        self.python_mib = max(self.python_mib, python)
        self.daemon_mib = max(self.daemon_mib, _held_mib(daemon))
        with _may_have_ended():
            # What a process spent that has just ended is with nobody any more.
            self.cpu_s = max(self.cpu_s, tree_s(driver) + own_s(daemon))


@contextmanager
def _may_have_ended() -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, ProcessLookupError):
        return


def _held_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1_024


async def replayed(records: int) -> dict[str, float]:
    """One replay of so many records."""
    lines: list[dict[str, object]] = []
    async with running_daemon() as daemon, dss_client.connect(endpoint=daemon.endpoint) as client:
        await client.topics.create(TOPIC, partitions=PARTITIONS)
        await bulk.fill(daemon, records)
        await bulk.make(client, JOB, 0)
        pid = (await client.daemon.status()).pid
        began_s = own_s(pid)
        with tempfile.TemporaryDirectory(prefix="dss-bench-") as folder:
            options = ("dss_spark", "--master", "local[2]", "--folder", f"{folder}/spark")
            async with bulk.started_driver(daemon, JOB, lines, options) as process:
                most = await _watched(process, pid)
        job = await client.jobs.get(JOB)
    if job.state != "done":
        raise BenchError(f"the job is {job.state}: {job.failure}")
    seconds = bulk.at_s(lines[-1]) - bulk.at_s(lines[0])
    most.cpu_s -= began_s
    return {"records": job.records, "seconds": seconds, **asdict(most)}


async def _watched(process: Process, daemon: int) -> Most:
    """What was held until the driver ended."""
    most = Most()
    async with within(DRIVEN_SECONDS_MAX, "a replay on Spark"):
        while process.runs:
            most.look(process.pid, daemon)
            await asyncio.sleep(LOOK_S)
    return most


async def main(sizes: list[str]) -> None:
    for size in sizes:
        found = await replayed(int(size))
        sys.stdout.write(json.dumps({name: round(each, 1) for name, each in found.items()}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
