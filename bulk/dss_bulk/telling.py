"""The output and the exit codes of a driver's process: the same for every engine.

It prints a line of JSON to stdout for each published chunk, and one at the end, each with its time.
Exit code 0: the job is done; 1: it failed, with the sentence on stderr; 6: another driver has it.
"""

import asyncio
import json
import sys
from collections.abc import Coroutine
from datetime import UTC, datetime

from dss_bulk.driver import Progress
from dss_core.errors import DssError


def run(driving: Coroutine[None, None, None]) -> int:
    """Drive to the end; returns the exit code."""
    try:
        asyncio.run(driving)
    except DssError as error:
        return told(error)
    except KeyboardInterrupt:
        return 130
    return 0


def told(error: DssError) -> int:
    """Print an error; returns the exit code."""
    sys.stderr.write(f"error {error.code}: {error.message}\nhint: {error.hint_text}\n")
    return int(error.exit_code)


def progressed(progress: Progress) -> None:
    """Print the progress."""
    tell(chunks=progress.chunks, published=progress.published, records=progress.records)


def tell(**said: object) -> None:
    """Print one line."""
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    sys.stdout.write(json.dumps({"at": at, **said}) + "\n")
    sys.stdout.flush()
