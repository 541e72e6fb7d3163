"""Errors of Spark as conditions of DSS.

Invariant: a mistake of one record or one option fails the job, with one sentence. If Spark is gone
nothing fails, because another driver can go on; nor does it on a full disk, because the driver
waits for room.
"""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException

from dss_core.errors import EngineLost, ExecutorIncomplete, WorkFailed
from dss_spark.executors import NEEDED

REASON_CHARACTERS_MAX = 500
"""Limit of a job's failure text: Spark repeats a trace for each attempt."""


_OF_PYTHON = re.compile(r"^(?:[\w.]+\.)?(\w+): (.+)$")
"""The beginning of the last line of a trace: the kind of the error."""
_NO_ROOM = {os.strerror(number): number for number in (errno.ENOSPC, errno.EDQUOT)}
"""How tasks in Python and the JVM name a full disk."""
_NO_MODULE = re.compile(r"No module named '(?P<name>[\w.]+)'")
_NO_PACKAGE = re.compile(r"\[PACKAGE_NOT_INSTALLED\] (?P<name>\w+)")
_OTHER_PYTHON = re.compile(
    r"Python in worker has different version: (?P<there>\S+) than that in driver: (?P<here>\S+?),"
)
_GONE = (Py4JNetworkError, ConnectionError)


@contextmanager
def conditions(job: str) -> Iterator[None]:
    """Raise errors of Spark as conditions.

    Raises:
        EngineLost: the JVM, or the session in it, has ended.
        ExecutorIncomplete: the Python of an executor is not what tasks need.
        WorkFailed: the work cannot be done.
        OSError: a disk is full.
    """
    try:
        yield
    except _GONE as gone:
        raise EngineLost(job=job, reason=_short(str(gone))) from gone
    except (PySparkException, Py4JError) as failed:
        text = str(failed)
        if "SparkContext was shut down" in text or "stopped SparkContext" in text:
            raise EngineLost(job=job, reason="its session was stopped") from failed
        for sentence, number in _NO_ROOM.items():
            if sentence in text:
                raise OSError(number, sentence) from failed
        if incomplete := _incomplete(text):
            raise ExecutorIncomplete(job=job, reason=incomplete) from failed
        raise WorkFailed(job=job, reason=reason_of(text)) from failed


def _incomplete(text: str) -> str:
    """The module of ours that a Python worker lacks; a user's function may lack one of its own."""
    if found := _OTHER_PYTHON.search(text):
        return f"their Python is {found['there']}, and that of the driver {found['here']}"
    for pattern in (_NO_MODULE, _NO_PACKAGE):
        for found in pattern.finditer(text):
            name = found["name"].lower()
            if any(needed.startswith(name) for needed in NEEDED):
                return f"their Python has no module {name}"
    return ""


def reason_of(text: str) -> str:
    """The line of a long report that tells the reason."""
    lines = text.splitlines()
    begins = next((at for at, line in enumerate(lines) if "Traceback" in line), len(lines))
    for line in lines[begins:]:
        # Lines that a trace quotes from a program are indented.
        found = _OF_PYTHON.match(line)
        if found is not None and not found[1].startswith(("Py", "Spark")):
            return _short(found[2] if "dss_core.errors" in line else line)
    return _short(next((line.strip() for line in lines if line.strip()), "it gave no reason"))


def _short(text: str) -> str:
    return text[:REASON_CHARACTERS_MAX].rstrip(". ")
