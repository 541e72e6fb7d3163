"""The engine on Spark: what `dss_bulk.driver` drives jobs with on a cluster.

Invariant: the session is begun under the lease and ended with the driver. Where it does not begin,
the job waits for another driver.
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
from dss_client.job_values import Granted
from dss_core.errors import EngineLost, IllegalJob
from dss_spark.audit import AuditOnSpark, AuditSource
from dss_spark.backfill import BackfillOnSpark
from dss_spark.export import ExportOnSpark
from dss_spark.export_sink import ExportSink
from dss_spark.limits import CHUNKS_AHEAD_MAX
from dss_spark.ranges import register_in
from dss_spark.replay import ReplayOnSpark
from dss_spark.rows_source import RowsSource
from dss_spark.sink import StageSource
from dss_spark.spooled import SpooledSource
from dss_spark.transform import TransformOnSpark
from dss_spark.work import OnSpark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCES = (AuditSource, ExportSink, RowsSource, SpooledSource, StageSource)


class SparkEngine:
    """Tasks of one session."""

    chunks_at_once = CHUNKS_AHEAD_MAX

    def __init__(self, begin: Callable[[], "SparkSession"], name: str) -> None:
        self._begin = begin
        self.name = name
        self._spark: SparkSession | None = None
        self._answers: Path | None = None

    @asynccontextmanager
    async def opened(self, job: str) -> AsyncIterator[None]:
        """A session, and a place for what its processes answer.

        Raises:
            EngineLost: it does not begin.
        """
        self._answers = Path(tempfile.mkdtemp(prefix="dss-spark-"))
        try:
            self._spark = await asyncio.to_thread(self._begun, job)
            yield
        finally:
            shutil.rmtree(self._answers)

    def _begun(self, job: str) -> "SparkSession":
        try:
            spark = self._begin()
            for source in SOURCES:
                spark.dataSource.register(source)
            register_in(spark)
        except Exception as failed:  # Py4J raises what the JVM did, of no common class
            reason = str(failed).splitlines()[0]
            raise EngineLost(job=job, reason=f"its session does not begin: {reason}") from failed
        return spark

    def work_of(self, client: Client, granted: Granted) -> Work:
        """The work of a job's kind.

        Raises:
            DssError: its parameters cannot be followed.
        """
        assert self._spark is not None, "the engine is opened first"
        assert self._answers is not None
        on = OnSpark(self._spark, granted, self._answers)
        match granted.job.kind:
            case "backfill":
                return BackfillOnSpark(on, granted)
            case "replay":
                return ReplayOnSpark(on, granted, client.endpoint)
            case "export":
                return ExportOnSpark(on, granted, client.endpoint)
            case "audit":
                return AuditOnSpark(on, client, granted)
            case "transform":
                return TransformOnSpark(on, granted, client.endpoint)
            case kind:
                raise IllegalJob(job=granted.job.name, rule=f"the engine on Spark makes no {kind}")
