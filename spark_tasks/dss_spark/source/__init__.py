"""The data source `dss`: records of DSS as a DataFrame, a range at once or as a stream.

    from dss_spark.source import register

    register(spark)
    spark.read.format("dss").option("topic", "orders").load()

Invariant: every kept record that was asked for comes once, in the order of its stream, or there is
an error; no record is passed silently. Reading changes nothing in DSS: it is no group, has no
progress, and its only state is in Spark's checkpoint.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register"]


def register(spark: "SparkSession") -> None:
    """Let a session read from DSS: ``spark.read.format("dss")``.

    Filters are pushed down if ``spark.sql.python.filterPushdown.enabled`` was set before this call.
    """
    from dss_spark.source.data_source import register_in

    register_in(spark)
