"""The data source as Spark sees it: its name, its columns, its readers.

Invariant: a source takes filters only if Spark's configuration allows it; `register_in` registers
the class that fits.
"""

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader

from dss_spark.error_notes import noted
from dss_spark.source.batch import DssReader, PushingDssReader
from dss_spark.source.options import SourceOptions
from dss_spark.source.schema import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

PUSHES = "spark.sql.python.filterPushdown.enabled"


class DssSource(DataSource):
    """The data source, without filters."""

    reads_with = DssReader

    @classmethod
    def name(cls) -> str:
        """What `format` is told."""
        return "dss"

    def schema(self) -> str:
        """The requested columns.

        Raises:
            DssError: the options break a rule.
        """
        return spark_schema(self._said().columns)

    def reader(self, schema: "StructType") -> DataSourceReader:
        """Reads a range."""
        with noted():
            return self.reads_with(self._said().for_batch())

    def streamReader(self, schema: "StructType") -> DataSourceStreamReader:
        """Reads continuously."""
        from dss_spark.source.stream import DssStreamReader

        with noted():
            return DssStreamReader(self._said().for_stream())

    def _said(self) -> SourceOptions:
        with noted():
            return SourceOptions.of(self.options)


class PushingDssSource(DssSource):
    """The data source that takes filters."""

    reads_with = PushingDssReader


def register_in(spark: "SparkSession") -> None:
    """Register it in a session."""
    pushes = spark.conf.get(PUSHES, "false") == "true"
    spark.dataSource.register(PushingDssSource if pushes else DssSource)
