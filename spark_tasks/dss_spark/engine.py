"""The engine on Spark, with which `dss_bulk.driver` drives jobs on a cluster.

Invariant: nothing runs in the session before the lease is there, and the session ends with the
driver. If the session does not start, the job waits for another driver.
"""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dss_bulk.work import Work
from dss_client import Client
from dss_client.job_values import Granted, Job
from dss_core.errors import EngineLost, IllegalJob
from dss_spark.kinds import kind_of
from dss_spark.ranges import register_in
from dss_spark.work import OnSpark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHUNKS_AHEAD_MAX = 4
"""How many chunks are worked on at once: while one waits for its commit, others are read. None of
them holds more than a chunk's files."""


class SparkEngine:
    """Tasks of one session."""

    chunks_at_once = CHUNKS_AHEAD_MAX

    def __init__(self, begin: Callable[[], "SparkSession"], name: str) -> None:
        self._begin = begin
        self.name = name
        self._spark: SparkSession | None = None
        self._answers: Path | None = None

    @asynccontextmanager
    async def opened(self, job: Job) -> AsyncIterator[None]:
        """A session with what the job needs, and a folder for the answers of its processes.

        Raises:
            EngineLost: it does not start.
        """
        self._answers = Path(tempfile.mkdtemp(prefix="dss-spark-"))
        try:
            self._spark = await asyncio.to_thread(self._begun, job)
            yield
        finally:
            shutil.rmtree(self._answers)

    def _begun(self, job: Job) -> "SparkSession":
        kind = kind_of(job.kind)  # Loaded while the session starts.
        try:
            spark = self._begin()
            for source in () if kind is None else kind.sources:
                spark.dataSource.register(source)
            register_in(spark)
        except Exception as failed:  # Py4J raises what the JVM did, of no common class
            reason = f"its session does not begin: {str(failed).splitlines()[0]}"
            raise EngineLost(job=job.name, reason=reason) from failed
        return spark

    def work_of(self, client: Client, granted: Granted) -> Work:
        """The work of a job's kind.

        Raises:
            DssError: its parameters are wrong.
        """
        assert self._spark is not None, "the engine is opened first"
        assert self._answers is not None
        job = granted.job
        kind = kind_of(job.kind)
        if kind is None:
            raise IllegalJob(job=job.name, rule=f"the engine on Spark makes no {job.kind}")
        return kind.work(OnSpark(self._spark, granted, self._answers), client, granted)
