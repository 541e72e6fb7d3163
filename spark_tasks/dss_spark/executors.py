"""What the executors of a cluster need besides our packages, and whether they have it.

This is checked once work has failed: a worker of Spark that cannot load Arrow ends before it can
say why, and a check in advance would cost each job a Spark job.

Invariant: this module loads only the standard library, so that the check works where everything
else is missing.
"""

import importlib
import platform
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import SparkContext

NEEDED = ("google.protobuf", "grpc", "pyarrow", "xxhash")
"""Modules that tasks load; `pip install dss` brings them."""


def lacking(context: "SparkContext", tasks: int) -> str:
    """What some executor lacks, in words; empty if all have everything.

    Raises:
        PySparkException, Py4JError: they cannot even be asked.
    """
    asked = context.range(tasks, numSlices=tasks).mapPartitions(_lacking)
    found: list[tuple[str, str]] = asked.collect()
    return "; ".join(f"on {host} {what}" for host, what in sorted(set(found)))


def _lacking(_numbers: Iterable[int]) -> Iterator[tuple[str, str]]:
    """Host and sentence, for each module that cannot be loaded here."""
    for name in NEEDED:
        try:
            importlib.import_module(name)
        except ImportError:
            yield platform.node(), f"there is no module {name}"
