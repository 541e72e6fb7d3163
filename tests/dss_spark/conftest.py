"""One session of Spark for all tests of these folders: a JVM takes seconds to start.

It is as small as it can be, retries a task twice, and listens on loopback alone. Tests leave
nothing in it but temporary views.
"""

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from support.prerequisites import need_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.python.daemon.module": "dss_spark.worker_parent",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


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
