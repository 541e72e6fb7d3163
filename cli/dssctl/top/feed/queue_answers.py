"""Asks the daemon for the failed records of a group: its dead letters, and its retry queue.

Invariant: a look reads a bounded part of a queue, however much is in it.
"""

from contextlib import aclosing
from typing import TYPE_CHECKING, Literal

from dssctl.top.limits import RECORDS_PAGE
from dssctl.top.model.answers import Answer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from dss_client import Client, QueueEntry
    from dssctl.top.model.places import Place

LOOKED_AT_MAX = 2_000
"""How many entries of a queue one look counts by error and key: it is repeated about every
second."""


async def queue_answer(
    client: "Client",
    place: "Place",
    question: Literal["dead", "dead-records", "dead-letter", "waiting"],
) -> Answer:
    """What a screen asks about a queue of a group.

    Raises:
        DssError: the daemon refuses, or is away.
    """
    queues, group = client.queues, place.group
    match question:
        case "dead":
            errors = await queues.errors(group, at_most=LOOKED_AT_MAX)
            keys = await queues.keys(group, error=place.name, at_most=LOOKED_AT_MAX)
            return Answer(place, errors=errors.errors, keys=keys.keys)
        case "dead-records" if place.name or place.key is not None:
            chosen = queues.dead_letters(group, error=place.name, key=place.key)
            return Answer(place, entries=await _first(chosen))
        case "dead-letter":
            stream, _, offset = place.name.rpartition("@")
            found = await queues.peek(group, stream=stream, offset=int(offset))
            if not found:
                found = await queues.peek(group, stream=stream, offset=int(offset), level="retry")
            return Answer(place, entries=found)
        case _:
            level = "retry" if question == "waiting" else "dead"
            newest = await queues.newest(group, RECORDS_PAGE, level=level)
            return Answer(place, entries=newest.entries)


async def _first(entries: "AsyncGenerator[QueueEntry, None]") -> "tuple[QueueEntry, ...]":
    found: list[QueueEntry] = []
    async with aclosing(entries):
        async for each in entries:
            found.append(each)
            if len(found) == RECORDS_PAGE:
                break
    return tuple(found)
