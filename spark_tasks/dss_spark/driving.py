"""The driver's process on Spark: what `python -m dss_bulk` is for the local engine.

Invariant: it tells how it ended by its exit code, and never by that of a cluster: the job is done
when the daemon says so.
"""

import argparse

import dss_client
from dss_bulk.driver import drive
from dss_bulk.telling import progressed, run, tell
from dss_spark.beginning import Beginning
from dss_spark.engine import SparkEngine


def main(beginning: Beginning) -> int:
    """Drive the job that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("job", help="its name or number")
    parser.add_argument("--endpoint", help="of the daemon")
    parser.add_argument("--master", default="", help="for people: what it was submitted to")
    arguments = parser.parse_args()
    engine = SparkEngine(beginning.session, f"spark {arguments.master}".strip())
    return run(_drive(arguments.job, arguments.endpoint, engine))


async def _drive(job: str, endpoint: str | None, engine: SparkEngine) -> None:
    async with dss_client.connect(endpoint=endpoint) as client:
        ended = await drive(client, job, progressed, engine=engine)
        tell(job=ended.name, state=ended.state, records=ended.records)
