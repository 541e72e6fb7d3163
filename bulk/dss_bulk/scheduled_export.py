"""``python -m dss_bulk.scheduled_export JOB TOPIC FOLDER``: export what is new in a topic.

For repeated exports under one name: an unfinished job of an earlier run is continued; then the new
records are exported, by a job that takes the place of the earlier one. Its output and its exit
codes: `dss_bulk.telling`. Invariant: if this ends with 0, no work under the name is left.
"""

import argparse
import asyncio
import sys
from pathlib import Path

import dss_client
from dss_bulk.driver import drive
from dss_bulk.local_engine import LOCAL
from dss_bulk.next_export import next_export
from dss_bulk.own_process import in_one_thread, set_up
from dss_bulk.priority import give_way
from dss_bulk.telling import progressed, run, tell
from dss_client import Client
from dss_client.changes import CreateJob, RemoveJob
from dss_core.counted import counted
from dss_core.errors import JobNotFound

REASON = "a schedule exports what is new"


def main() -> int:
    """Export what the command line names."""
    give_way()
    set_up()
    parser = argparse.ArgumentParser(prog="python -m dss_bulk.scheduled_export")
    parser.add_argument("job", help="its name")
    parser.add_argument("topic")
    parser.add_argument("folder", type=Path, help="of its own")
    parser.add_argument("--only", default="", help="a filter of subjects")
    parser.add_argument("--endpoint", help="of the daemon")
    given = parser.parse_args()
    change = CreateJob(given.job, "export", source=given.topic, filter=given.only)
    return run(in_one_thread(_export(change, given.folder.resolve(), given.endpoint)))


async def _export(change: CreateJob, folder: Path, endpoint: str | None) -> None:
    async with dss_client.connect(endpoint=endpoint, patient=False) as client:
        earlier = await _finished(client, change.name)
        new = await next_export(client, change, folder)
        for condition in new.told:
            tell(said=f"{condition.code}: {condition.message}")
        if new.change is None:
            await asyncio.to_thread(new.run.note, new.noted)
            tell(said=f"nothing of {change.source} is new since the last export to {folder}")
            return
        if earlier:
            remove = await client.operations.plan(RemoveJob(change.name))
            await client.operations.apply(remove, reason=REASON)
        await client.operations.apply(await client.operations.plan(new.change), reason=REASON)
        ended = await drive(client, change.name, progressed, engine=LOCAL)
        tell(said=f"{counted(ended.records, 'record')} exported to {folder}")


async def _finished(client: Client, job: str) -> bool:
    """Finish an earlier job; returns whether there is one."""
    try:
        found = await client.jobs.get(job)
    except JobNotFound:
        return False
    if not found.has_ended:
        ended = await drive(client, job, progressed, engine=LOCAL)
        tell(said=f"{counted(ended.records, 'record')} exported that an earlier run had left")
    return True


if __name__ == "__main__":
    sys.exit(main())
