"""How a driver is submitted to Spark: the command line of `spark-submit`, and what it needs here.

::

    python -m dss_spark JOB ── spark-submit ── JVM ── Python: dss_spark.driving ── workers
          │                      one process group, the job's folder as spark.local.dir
          └── waits, passes signals on, and removes the folder

Invariant: the user's ``--conf`` settings win; what is not set is bounded, and for a local master
stays on loopback. This module does not import PySpark: it only checks whether it is installed.
"""

import importlib.util
import os
import re
import shutil
import socket
import sys
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dss_core.errors import EngineMissing, MasterUnreachable

ARROW_ROWS_PER_BATCH = 8_192
"""Rows that Spark hands to Python at once: at 200 bytes each, a batch stays in the cache."""

TASK_ATTEMPTS = 3
"""How often a task of a local master may fail; Spark's own default there is once."""

DRIVER_MEMORY = "1g"
"""Memory of the JVM, unless `--conf spark.driver.memory` sets it: records pass through tasks, and
the driver holds lists of files."""

MASTER_CONNECT_S = 3.0
"""How long a master may take to accept a connection before a job is submitted to it."""


PACKAGES = ("dss_api", "dss_bulk", "dss_client", "dss_core", "dss_spark")
"""Our packages that tasks on other machines need."""

ENTRY = Path(__file__).parent / "entry" / "drive_job.py"
_LOCAL = re.compile(r"local(\[(?P<tasks>\d+|\*)(,(?P<attempts>\d+))?\])?")
_HOST = re.compile(r"(?P<host>[^:/,]+|\[[0-9a-fA-F:]+\]):(?P<port>\d+)")


@dataclass(frozen=True, slots=True)
class Submission:
    """The program to submit, and its cluster."""

    jobs: Sequence[str]
    """Jobs that are driven one after another."""
    endpoint: str | None
    master: str
    conf: Mapping[str, str]
    folder: Path
    """The folder of this driver alone; removed when it has ended."""


def require_spark() -> Path:
    """The folder of PySpark.

    Raises:
        EngineMissing: there is no PySpark, or no Java to run it.
    """
    found = importlib.util.find_spec("pyspark")
    if found is None or not found.submodule_search_locations:
        raise EngineMissing(engine="spark", what="PySpark", package="dss[spark]")
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(str(Path(home) / "bin/java") if home else "java")
    if java is None:
        package = "a Java runtime, version 17 or newer (openjdk-17-jre-headless for one)"
        raise EngineMissing(engine="spark", what="Java", package=package)
    return Path(next(iter(found.submodule_search_locations)))


def require_master(master: str) -> None:
    """Make sure that a master may be there.

    Raises:
        MasterUnreachable: nobody accepts a connection, or its address is malformed.
    """
    if _LOCAL.fullmatch(master):
        return
    if master == "yarn":
        if not (os.environ.get("HADOOP_CONF_DIR") or os.environ.get("YARN_CONF_DIR")):
            raise MasterUnreachable(master=master, reason="HADOOP_CONF_DIR names no configuration")
        return
    scheme, _, rest = master.partition("://")
    places = [_HOST.fullmatch(each) for each in _places(scheme, rest)]
    if not places or None in places:
        raise MasterUnreachable(master=master, reason="it is not written as Spark writes masters")
    failures = [_not_reached(each["host"], int(each["port"])) for each in places if each]
    if all(failures):
        raise MasterUnreachable(master=master, reason=failures[0])


def _places(scheme: str, rest: str) -> list[str]:
    """HOST:PORT of a master; several of a standalone cluster that has a standby."""
    if scheme == "spark":
        return rest.split(",")
    if scheme == "k8s":
        return [rest.partition("://")[2].rstrip("/") or rest]
    return []


def _not_reached(host: str, port: int) -> str:
    try:
        socket.create_connection((host.strip("[]"), port), MASTER_CONNECT_S).close()
    except OSError as error:
        return f"{host}:{port} takes no connection ({error.strerror or error})"
    return ""


def command_of(submission: Submission, pyspark: Path) -> list[str]:
    """The command line; creates the files that it names below the folder."""
    conf = {**_usual(submission), **submission.conf}
    options = [f"{name}={value}" for name, value in conf.items()]
    command = [str(pyspark / "bin" / "spark-submit"), "--master", _with_attempts(submission.master)]
    command += ["--name", f"dss-{submission.jobs[0]}"]
    command += [word for option in options for word in ("--conf", option)]
    if not is_local(submission.master):
        command += ["--py-files", str(_packed(submission.folder))]
    command += [str(ENTRY), *submission.jobs, "--master", submission.master]
    if submission.endpoint is not None:
        command += ["--endpoint", submission.endpoint]
    return command


def environment(home: Path, master: str) -> dict[str, str]:
    """The environment of `spark-submit`: this interpreter, for the driver and its workers."""
    loopback = {"SPARK_LOCAL_IP": "127.0.0.1"} if is_local(master) else {}
    paths = [path for path in sys.path if path and Path(path).is_dir()]
    return {
        **os.environ,
        "SPARK_HOME": str(home),
        "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONWARNINGS": "ignore::FutureWarning",
        # Workers of Spark are forked, and load gRPC only after that.
        "GRPC_ENABLE_FORK_SUPPORT": "0",
        "OPENBLAS_NUM_THREADS": "1",
        **loopback,
    }


def is_local(master: str) -> bool:
    """Whether everything runs on this machine, in one JVM."""
    return _LOCAL.fullmatch(master) is not None


def _usual(submission: Submission) -> dict[str, str]:
    conf = {
        "spark.driver.memory": DRIVER_MEMORY,
        "spark.local.dir": str(submission.folder / "local"),
        "spark.sql.warehouse.dir": str(submission.folder / "warehouse"),
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(ARROW_ROWS_PER_BATCH),
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "WARN",
    }
    if is_local(submission.master):
        conf["spark.driver.host"] = conf["spark.driver.bindAddress"] = "127.0.0.1"
        # Workers are forked from a process that has loaded what they need.
        conf["spark.python.daemon.module"] = "dss_spark.worker_parent"
    return conf


def _with_attempts(master: str) -> str:
    """A local master with retries: without them, the first failure of a task is the last."""
    found = _LOCAL.fullmatch(master)
    if found is None or found["attempts"]:
        return master
    return f"local[{found['tasks'] or 1},{TASK_ATTEMPTS}]"


def _packed(folder: Path) -> Path:
    """Our packages in one file; Spark's executors cannot import from a wheel."""
    path = folder / "dss.zip"
    with zipfile.ZipFile(path, "w") as packed:
        for name in PACKAGES:
            found = importlib.util.find_spec(name)
            assert found is not None, name
            assert found.submodule_search_locations, name
            root = Path(next(iter(found.submodule_search_locations)))
            for source in sorted(root.rglob("*.py")):
                packed.write(source, Path(name) / source.relative_to(root))
    return path


def conf_of(given: Sequence[str]) -> dict[str, str]:
    """Properties of Spark from ``NAME=VALUE``.

    Raises:
        ValueError: one is malformed.
    """
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not (equals and name.startswith("spark.")):
            raise ValueError(f"'{text}' is no property of Spark; write spark.NAME=VALUE.")
        found[name] = value
    return found
