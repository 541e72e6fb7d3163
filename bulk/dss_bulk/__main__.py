"""``python -m dss_bulk JOB --endpoint ADDRESS``: drive one job in a process of its own.

Its output and its exit codes: `dss_bulk.telling`.
"""

import argparse
import sys

import dss_client
from dss_bulk.driver import drive
from dss_bulk.local_engine import LocalEngine
from dss_bulk.own_process import in_one_thread, set_up
from dss_bulk.priority import give_way
from dss_bulk.telling import progressed, run, tell


def main() -> int:
    """Drive the job that the command line names."""
    give_way()
    set_up()
    parser = argparse.ArgumentParser(prog="python -m dss_bulk", description=__doc__)
    parser.add_argument("job", help="its name or number")
    parser.add_argument("--endpoint", help="of the daemon")
    parser.add_argument("--wire", action="store_true", help="read no files of the daemon")
    arguments = parser.parse_args()
    engine = LocalEngine(in_place=not arguments.wire)
    return run(in_one_thread(_drive(arguments.job, arguments.endpoint, engine)))


async def _drive(job: str, endpoint: str | None, engine: LocalEngine) -> None:
    async with dss_client.connect(endpoint=endpoint, patient=False) as client:
        ended = await drive(client, job, progressed, engine=engine)
        tell(job=ended.name, state=ended.state, records=ended.records)


if __name__ == "__main__":
    sys.exit(main())
