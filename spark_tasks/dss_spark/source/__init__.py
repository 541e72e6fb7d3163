"""The data source `dss`: records of DSS as a DataFrame, a range at once or as they come.

    from dss_spark.source import register

    register(spark)
    spark.read.format("dss").option("topic", "orders").load()

Invariant: of what is asked for every kept record comes once, in the order of its stream, or an
error; a record is never passed in silence. Reading changes nothing in DSS: it is no group, has no
progress, and keeps no state but what Spark has in its checkpoint.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register"]


def register(spark: "SparkSession") -> None:
    """Let a session read from DSS: ``spark.read.format("dss")``.

    Filters are pushed down where ``spark.sql.python.filterPushdown.enabled`` says so by now.
    """
    from dss_spark.source.data_source import register_in

    register_in(spark)
