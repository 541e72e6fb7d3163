"""The process from which Spark's Python workers are forked, with their modules loaded.

A worker that loads Arrow and our modules itself takes half a second for it, and Spark starts some
for each chunk. gRPC is not loaded here: it does not survive a fork.

Invariant: nothing is opened before a fork, and the only thread is that of an allocator that is made
for forks; Arrow starts its own threads with their first work.
"""

import pyarrow as pa
import pyspark.sql.worker.commit_data_source_write
import pyspark.sql.worker.plan_data_source_read
import pyspark.sql.worker.write_into_data_source
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import dss_spark.rows_source
import dss_spark.spooled
import dss_spark.staged_tasks  # noqa: F401

if __name__ == "__main__":
    pa.scalar(0)  # With its first value Arrow loads pandas, if installed.
    manager()
