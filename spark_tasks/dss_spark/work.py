"""The common parts of all kinds of jobs on Spark: a thread, a tag, a folder for answers.

A chunk is worked on in a thread, which waits for Spark, while the event loop keeps the lease. All
its work on the cluster has the tag of its driver, so a driver that has to stop ends all of it at
once.

Invariant: once `stop` was called, nothing more begins; files that tasks had written by then are
never named, and are swept.
"""

import asyncio
import secrets
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from dss_bulk.target import Target
from dss_client.job_values import Granted
from dss_core.errors import EngineLost, ExecutorIncomplete, WorkFailed
from dss_spark.executors import lacking
from dss_spark.failures import conditions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Done = TypeVar("Done")


class OnSpark:
    """One driver's use of a session."""

    def __init__(self, spark: "SparkSession", granted: Granted, answers: Path) -> None:
        self.spark = spark
        self.job = granted.job
        self.at_once = spark.sparkContext.defaultParallelism
        """How many tasks run at once."""
        self._tag = f"dss-{granted.job.job_id}-{granted.job.epoch}-{secrets.token_hex(4)}"
        self._is_stopped = threading.Event()
        self._answers = answers

    async def run(self, work: Callable[[], Done]) -> Done:
        """The result of a function that runs in a thread, as a part of this driver's work.

        Raises:
            EngineLost, DssError: it failed.
        """
        return await asyncio.to_thread(self._run, work)

    def _run(self, work: Callable[[], Done]) -> Done:
        context = self.spark.sparkContext
        with conditions(self.job.name):
            if self._is_stopped.is_set():
                raise EngineLost(job=self.job.name, reason="its driver has stopped it")
            # Tags and the active session belong to threads, and threads are reused.
            _make_active(self.spark)
            context.addJobTag(self._tag)
            try:
                return self._explained(work)
            finally:
                context.removeJobTag(self._tag)

    def _explained(self, work: Callable[[], Done]) -> Done:
        """The result of a function; if it fails and executors lack something, that counts as the
        reason.

        Raises:
            ExecutorIncomplete, EngineLost, DssError: it failed.
        """
        try:
            with conditions(self.job.name):
                return work()
        except WorkFailed as failed:
            if self._is_stopped.is_set():
                raise
            if missing := self._lacking():
                raise ExecutorIncomplete(job=self.job.name, reason=missing) from failed
            raise

    def _lacking(self) -> str:
        try:
            with conditions(self.job.name):
                return lacking(self.spark.sparkContext, self.at_once)
        except WorkFailed:
            return ""  # The first failure tells more.

    def answer(self, chunk: int) -> Path:
        """A name for the file in which Spark's own process answers this one about a chunk."""
        return self._answers / f"{chunk:08d}-{secrets.token_hex(4)}.json"

    def stop(self) -> None:
        """End all work of this driver on the cluster."""
        self._is_stopped.set()
        with conditions(self.job.name):
            self.spark.sparkContext.cancelJobsWithTag(self._tag)


def _make_active(spark: "SparkSession") -> None:
    """Make a session the active one of this thread: Spark looks for sources there."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    jvm.SparkSession.setActiveSession(spark._jsparkSession)


def target_of(granted: Granted) -> Target:
    """The routing of the job's target topic."""
    assert granted.target is not None, "the job writes to a topic"
    target = granted.target
    return Target(target.router, target.partitions, target.factor)
