"""The kinds of jobs that run on Spark: what each registers in a session, and its work.

Invariant: a kind is loaded when a job of it comes, and not before. Loading Arrow is half of a
driver's start, and drivers of replays and transforms do not need it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dss_spark.export_sink import ExportSink
from dss_spark.sink import StageSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSource

    from dss_bulk.work import Work
    from dss_client import Client
    from dss_client.job_values import Granted
    from dss_spark.work import OnSpark


@dataclass(frozen=True, slots=True)
class JobKind:
    """How jobs of one kind are done."""

    sources: "tuple[type[DataSource], ...]"
    """Data sources to register with Spark, besides `dss`."""
    work: "Callable[[OnSpark, Client, Granted], Work]"


def kind_of(name: str) -> JobKind | None:
    """The sources and the work of a job's kind; None if it does not run on Spark."""
    match name:
        case "replay":
            from dss_spark.replay import ReplayOnSpark

            return JobKind(
                (StageSource,), lambda on, client, job: ReplayOnSpark(on, job, client.endpoint)
            )
        case "transform":
            from dss_spark.transform import TransformOnSpark

            return JobKind(
                (StageSource,), lambda on, client, job: TransformOnSpark(on, job, client.endpoint)
            )
        case "export":
            from dss_spark.export import ExportOnSpark

            return JobKind(
                (ExportSink,), lambda on, client, job: ExportOnSpark(on, job, client.endpoint)
            )
        case "backfill":
            from dss_spark.backfill import BackfillOnSpark
            from dss_spark.rows_source import RowsSource
            from dss_spark.spooled import SpooledSource

            return JobKind(
                (RowsSource, SpooledSource, StageSource),
                lambda on, _client, job: BackfillOnSpark(on, job),
            )
        case "audit":
            from dss_spark.audit import AuditOnSpark, AuditSource

            return JobKind((AuditSource,), AuditOnSpark)
        case _:
            return None
