"""What the process of a driver says, and how it ends: the same for every engine.

A line of JSON to stdout for each chunk that is published, one at the end, each with its time. Exit
code 0: the job is done; 1: it failed, with the sentence on stderr; 6: another driver has it.
"""

import asyncio
import json
import sys
from collections.abc import Coroutine
from datetime import UTC, datetime

from dss_bulk.driver import Progress
from dss_core.errors import DssError


def run(driving: Coroutine[None, None, None]) -> int:
    """Drive to the end; the exit code."""
    try:
        asyncio.run(driving)
    except DssError as error:
        return told(error)
    except KeyboardInterrupt:
        return 130
    return 0


def told(error: DssError) -> int:
    """Tell an error; the exit code."""
    sys.stderr.write(f"error {error.code}: {error.message}\nhint: {error.hint_text}\n")
    return int(error.exit_code)


def progressed(progress: Progress) -> None:
    """Say how far it is."""
    tell(chunks=progress.chunks, published=progress.published, records=progress.records)


def tell(**said: object) -> None:
    """One line."""
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    sys.stdout.write(json.dumps({"at": at, **said}) + "\n")
    sys.stdout.flush()
