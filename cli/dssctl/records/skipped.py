"""What operators passed over or gave up for a group, as its operations tell.

Invariant: an operation that was taken back, or did nothing, is not told. Operations are kept for a
bounded time, and what they did is known for as long.
"""

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dssctl.items import item_of
from dssctl.output import Item

if TYPE_CHECKING:
    from dss_client import Client, Operation

PASSING = ("records.skip", "offsets.skip", "offsets.seek", "rq.skip", "dlq.discard")
"""Kinds of operations after which nobody gets the records."""


async def skipped_by_hand(client: "Client", named: str) -> list[Item]:
    """A row for each stream of each operation, the oldest first."""
    group = (await client.groups.describe(named)).group
    name = f"{group.name}@{group.filter}"
    found: list[Item] = []
    for each in await client.operations.list(subject=name):
        if (
            each.kind in PASSING
            and not each.undone_by
            and each.state in ("done", "cancelled", "running")
        ):
            found += _rows(await client.operations.get(each.number))
    return sorted(found, key=lambda item: str(item["operation"]).zfill(20))


def _rows(operation: "Operation") -> Iterator[Item]:
    change = json.loads(operation.change)
    if operation.kind == "records.skip":
        for span in (change, *change["more"]):
            yield _row(operation, span["stream"], span["count"], span["offset"])
    elif operation.kind.startswith("offsets."):
        for each in operation.streams:
            before = each.before.floor if each.before else 0
            after = each.after.floor if each.after else 0
            if after > before:
                yield _row(operation, each.stream, after - before, before)
    else:
        for lane in change["lanes"]:
            yield _row(operation, lane["stream"], _count(lane), None)


def _count(lane: Mapping[str, Any]) -> int:
    return sum(end - start for start, end in lane["ranges"])


def _row(operation: "Operation", stream: str, count: int, offset: int | None) -> Item:
    return item_of(
        "SkippedRecords",
        operation,
        operation=operation.number,
        stream=stream,
        offset=offset,
        count=count,
    )
