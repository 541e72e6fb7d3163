"""The driver's process on Spark: what `python -m dss_bulk` is for the local engine.

Invariant: it tells how it ended by its exit code, and never by that of a cluster: the job is done
when the daemon says so.
"""

import argparse
from typing import TYPE_CHECKING

import dss_client
from dss_bulk.driver import drive
from dss_bulk.telling import progressed, run, tell
from dss_spark.engine import SparkEngine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main() -> int:
    """Drive the job that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("job", help="its name or number")
    parser.add_argument("--endpoint", help="of the daemon")
    parser.add_argument("--master", default="", help="for people: what it was submitted to")
    arguments = parser.parse_args()
    engine = SparkEngine(_session, f"spark {arguments.master}".strip())
    return run(_drive(arguments.job, arguments.endpoint, engine))


async def _drive(job: str, endpoint: str | None, engine: SparkEngine) -> None:
    async with dss_client.connect(endpoint=endpoint) as client:
        ended = await drive(client, job, progressed, engine=engine)
        tell(job=ended.name, state=ended.state, records=ended.records)


def _session() -> "SparkSession":
    """The session that this process was submitted with."""
    from pyspark.sql import SparkSession

    session = SparkSession.builder.getOrCreate()
    session.sparkContext.setLogLevel("WARN")
    return session
