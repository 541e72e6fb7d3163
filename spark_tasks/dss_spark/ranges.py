"""The records that a chunk of a job reads, as a frame that can be staged.

Columns: those of the data source `dss`, its times also in microseconds, and ``generation``, the
number of the storage topic. Records of one key are in one stream of a generation, so `ORDER` is the
order of each key.

Invariant: every record of the ranges that the job selects, once, or an error.
"""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dss_bulk.selection import RecordSelection
from dss_client.job_values import SourceRange
from dss_core.endpoints import CREDENTIAL_VARIABLES
from dss_spark.selection import conditions_of
from dss_spark.source.data_source import register_in
from dss_spark.source.options import ranges_to_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ORDER = ("generation", "stream", "offset")
__all__ = ["ORDER", "read_ranges", "register_in"]


def read_ranges(
    spark: "SparkSession",
    endpoint: str,
    ranges: Sequence[SourceRange],
    selection: RecordSelection,
    *,
    dead_letters: str = "",
    tells: bool = False,
) -> "DataFrame":
    """The selected records of a chunk; for a group, its dead letters.

    Headers of dead letters tell why they are dead, if somebody copies them.
    """
    reader = spark.read.format("dss").option("endpoint", endpoint)
    if selection.subject is not None:
        # The daemon checks it before it sends anything.
        reader = reader.option("subject", selection.subject.text)
    for name, variable in CREDENTIAL_VARIABLES.items():
        # Workers on other hosts do not have the driver's environment.
        if path := os.environ.get(variable):
            reader = reader.option(name, path)
    if dead_letters:
        reader = reader.option("dead_letters", dead_letters).option("tells", str(tells).lower())
    frame = reader.option("ranges", ranges_to_json(tuple(ranges))).load()
    return frame.selectExpr(
        "*",
        "unix_micros(time) AS timestamp_us",
        "unix_micros(append_time) AS append_time_us",
        "CAST(split_part(stream, '/', 2) AS INT) AS generation",
    ).where(conditions_of(selection))
