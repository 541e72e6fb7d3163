"""What Spark raises becomes a condition; a full disk stays what it is, so that it is waited for."""

import errno

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.errors import PySparkException

from dss_core.errors import EngineLost, ExecutorIncomplete, WorkFailed
from dss_spark.failures import conditions

TRACE = """Job aborted due to stage failure: Task 0 in stage 2.0 failed 3 times
Traceback (most recent call last):
  File "/x/dss_spark/staging.py", line 178, in write
    with StagedWriter(plan.directory, plan.staged_for) as staged:
  File "/x/dss_core/staged.py", line 84, in __init__
    self._file: BinaryIO = self._unfinished.open("xb")
                           ^^^^^^^^^^^^^^^^^^^^^^^^^^^
{said}
 SQLSTATE: 38000
"""

OTHER_PYTHON = (
    "pyspark.errors.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different "
    "version: 3.10 than that in driver: 3.11, PySpark cannot run with different minor versions."
)


def raised(text: str) -> None:
    with conditions("again"):
        raise PySparkException(text)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (TRACE.format(said="OSError: [Errno 28] No space left on device"), errno.ENOSPC),
        (TRACE.format(said="OSError: [Errno 122] Disk quota exceeded: '/x'"), errno.EDQUOT),
        ("java.io.IOException: No space left on device", errno.ENOSPC),
    ],
)
def test_a_full_disk_of_a_task_or_of_the_jvm_is_no_failure_of_the_work(
    text: str, number: int
) -> None:
    with pytest.raises(OSError, match=r"No space|quota") as full:
        raised(text)
    assert full.value.errno == number


def test_what_a_task_raises_fails_the_work_with_its_last_line() -> None:
    with pytest.raises(WorkFailed, match="ZeroDivisionError: division by zero"):
        raised(TRACE.format(said="ZeroDivisionError: division by zero"))
    with pytest.raises(WorkFailed, match="the offset is not kept") as failed:
        raised(TRACE.format(said="dss_core.errors.log.OffsetGone: the offset is not kept"))
    assert "OffsetGone" not in failed.value.message


def test_a_spark_that_is_gone_fails_nothing() -> None:
    with pytest.raises(EngineLost, match="its session was stopped"):
        raised("Job 3 cancelled because SparkContext was shut down")
    with pytest.raises(EngineLost, match="no answer"), conditions("again"):
        raise Py4JNetworkError("no answer")


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("ModuleNotFoundError: No module named 'grpc'", "no module grpc"),
        ("ModuleNotFoundError: No module named 'google'", "no module google"),
        (
            "pyspark.errors.PySparkImportError: [PACKAGE_NOT_INSTALLED] PyArrow >= 18.0.0 must be",
            "no module pyarrow",
        ),
        (
            OTHER_PYTHON,
            "is 3.10, and that of the driver 3.11",
        ),
    ],
)
def test_an_executor_that_lacks_what_tasks_need_is_told_of(said: str, reason: str) -> None:
    with pytest.raises(ExecutorIncomplete, match=reason) as failed:
        raised(TRACE.format(said=said))
    assert "dssctl jobs drive again" in failed.value.hint_text


def test_a_module_that_only_a_function_loads_is_a_failure_of_the_work() -> None:
    with pytest.raises(WorkFailed, match="No module named 'holidays'"):
        raised(TRACE.format(said="ModuleNotFoundError: No module named 'holidays'"))
