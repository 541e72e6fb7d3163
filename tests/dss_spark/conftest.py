"""One session of Spark for all tests of these folders: a JVM takes seconds to start.

It is as small as it can be, retries a task twice, and listens on loopback alone. Tests leave
nothing in it but temporary views.
"""

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.prerequisites import need_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A JVM that lives for a minute and reads little: to compile well and to collect garbage beside its
work costs it half as much again."""
SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": JVM,
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.python.daemon.module": "dss_spark.worker_parent",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
LOADS_SPARK = {
    "test_audit.py",
    "test_backfill.py",
    "test_failures.py",
    "test_rows_source.py",
    "test_staging.py",
    "test_topic_jobs.py",
}
"""Files that cannot be read without PySpark."""


class FileLeftOut(pytest.File):
    """A file that cannot be read here."""

    def collect(self) -> "Iterator[LeftOut]":
        """One test, which says so."""
        yield LeftOut.from_parent(self, name="left out")


class LeftOut(pytest.Item):
    """Stands for the tests of a file."""

    def runtest(self) -> None:
        """Say what is missing."""
        need_spark()


def pytest_pycollect_makemodule(
    module_path: Path, parent: pytest.Collector
) -> pytest.Collector | None:
    """Leave out what loads PySpark, where there is none."""
    if module_path.name in LOADS_SPARK and importlib.util.find_spec("pyspark") is None:
        return FileLeftOut.from_parent(parent, path=module_path)
    return None


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """A session with two cores that tries each task three times, and reads from DSS."""
    need_spark()
    from pyspark.sql import SparkSession

    from dss_spark.source import register

    os.environ.update(
        PYSPARK_PYTHON=sys.executable,
        PYTHONPATH=os.pathsep.join(filter(None, sys.path)),
        SPARK_LOCAL_IP="127.0.0.1",
    )
    folder = tmp_path_factory.mktemp("spark")
    builder = SparkSession.builder.master("local[2,3]").appName("dss tests")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    builder = builder.config("spark.local.dir", str(folder / "local"))
    session = builder.config("spark.sql.warehouse.dir", str(folder / "warehouse")).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    register(session)
    yield session
    session.stop()
