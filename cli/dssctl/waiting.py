"""Waiting for the end of an operation.

Invariant: the operation does not depend on it; who stops waiting is told how to go on.
"""

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

from dss_core.errors import DssError, OperationGoesOn, OperationNotDone
from dssctl.advice import outages_noted
from dssctl.connection import connected, require_daemon
from dssctl.output import note
from dssctl.progress import settling
from dssctl.settings import Settings

if TYPE_CHECKING:
    from dss_client import Operation


def wait_for_end(settings: Settings, operation: "Operation") -> "Operation":
    """The operation once it has ended, however it did.

    Raises:
        OperationGoesOn: it did not end in time.
        KeyboardInterrupt: it was waited for no longer.
    """
    try:
        with outages_noted(settings):
            return asyncio.run(_waited(settings, operation))
    except TimeoutError as late:
        seconds = f"{settings.wait_s:g}"
        number, kind = operation.number, operation.kind
        raise OperationGoesOn(number=number, kind=kind, seconds=seconds) from late
    except DssError:
        number = operation.number
        goes_on = "it was taken, and what is left of it is done once a daemon runs"
        note(settings, f"operation {number}: {goes_on}; look: dssctl ops show {number}")
        raise
    except KeyboardInterrupt:
        sentence = f"operation {operation.number} goes on: dssctl ops wait {operation.number}"
        note(settings, sentence)
        raise


def require_done(operation: "Operation") -> None:
    """Make sure that an operation did all that it was to do, or still does it.

    Raises:
        OperationNotDone: it failed or was cancelled.
    """
    if not operation.ended or operation.state == "done":
        return
    raise OperationNotDone(
        number=operation.number,
        kind=operation.kind,
        state=operation.state,
        why=operation.failure or "an operator stopped it",
    )


async def _waited(settings: Settings, operation: "Operation") -> "Operation":
    title = f"operation {operation.number}"
    async with asyncio.timeout(settings.wait_s), connected(settings) as client:
        await require_daemon(client, settings)
        records = operation.records_asked
        with settling(settings, title, "streams" if records is None else "records") as show:
            async with aclosing(client.operations.watch(operation.number)) as watched:
                async for operation in watched:
                    if (standing := _standing(operation, records)) is not None:
                        show(*standing)
    return operation


def _standing(operation: "Operation", records: int | None) -> tuple[int, int] | None:
    """How many of all its parts are done; of records it tells nothing once it has ended."""
    if records is None:
        done = operation.streams_done
        return done, done + operation.streams_waiting
    if operation.state == "done":
        return records, records
    return None if operation.records_done is None else (operation.records_done, records)
