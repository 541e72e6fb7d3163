"""What Spark raises becomes a condition; a full disk stays what it is, so that it is waited for."""

import errno

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.errors import PySparkException

from dss_core.errors import EngineLost, WorkFailed
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
