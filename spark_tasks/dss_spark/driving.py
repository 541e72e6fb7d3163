"""The driver's process on Spark: what `python -m dss_bulk` is for the local engine.

Several jobs may share a session, because starting one costs more than a small job. The first that
fails ends the driver, and the jobs behind it wait for another one.

Invariant: only its exit code tells how it ended, never that of a cluster: the job is done when the
daemon says so.
"""

import argparse
from collections.abc import Sequence

import dss_client
from dss_bulk.driver import drive
from dss_bulk.telling import progressed, run, tell
from dss_spark.beginning import Beginning
from dss_spark.engine import SparkEngine


def main(beginning: Beginning) -> int:
    """Drive the job that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("job", nargs="+", help="its name or number; of some, one after another")
    parser.add_argument("--endpoint", help="of the daemon")
    parser.add_argument("--master", default="", help="for people: what it was submitted to")
    arguments = parser.parse_args()
    engine = SparkEngine(beginning.session, f"spark {arguments.master}".strip())
    return run(in_turn(arguments.job, arguments.endpoint, engine))


async def in_turn(jobs: Sequence[str], endpoint: str | None, engine: SparkEngine) -> None:
    """Drive jobs one after another, and report their progress.

    Raises:
        DssError: one cannot be driven, or failed; those behind it are not begun.
    """
    async with dss_client.connect(endpoint=endpoint, patient=False) as client:
        for job in jobs:
            ended = await drive(client, job, progressed, engine=engine)
            tell(job=ended.name, state=ended.state, records=ended.records)
