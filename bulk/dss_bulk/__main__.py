"""``python -m dss_bulk JOB --endpoint ADDRESS``: drive one job in a process of its own.

It says one line of JSON to stdout for each chunk that is published, one at the end. Exit code 0:
the job is done; 1: it failed, with the sentence on stderr; 6: another driver has it.
"""

import argparse
import asyncio
import json
import sys

import dss_client
from dss_bulk.driver import LocalEngine, Progress, drive
from dss_core.errors import DssError


def main() -> int:
    """Drive the job that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m dss_bulk", description=__doc__)
    parser.add_argument("job", help="its name or number")
    parser.add_argument("--endpoint", help="of the daemon")
    parser.add_argument("--wire", action="store_true", help="read no files of the daemon")
    arguments = parser.parse_args()
    try:
        engine = LocalEngine(in_place=not arguments.wire)
        asyncio.run(_drive(arguments.job, arguments.endpoint, engine))
    except DssError as error:
        sys.stderr.write(f"error {error.code}: {error.message}\nhint: {error.hint_text}\n")
        return int(error.exit_code)
    except KeyboardInterrupt:
        return 130
    return 0


async def _drive(job: str, endpoint: str | None, engine: LocalEngine) -> None:
    async with dss_client.connect(endpoint=endpoint) as client:
        ended = await drive(client, job, _say, engine=engine)
        _tell(job=ended.name, state=ended.state, records=ended.records)


def _say(progress: Progress) -> None:
    _tell(chunks=progress.chunks, published=progress.published, records=progress.records)


def _tell(**said: object) -> None:
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
