"""Where one record stands for each group that reads it."""

from typing import TYPE_CHECKING

from dss_core.errors import DssError
from dss_core.filters import TopicFilter
from dssctl.cells import REASON_STYLES
from dssctl.items import item_of
from dssctl.output import Column, Item, Kind
from dssctl.records.looking import Found

if TYPE_CHECKING:
    from dss_client import Client

GROUPS_OF_A_RECORD = 10
"""Groups that a record's page tells of; each is asked."""


STANDING_KIND = Kind(
    "GroupStanding",
    (
        Column("group", "GROUP"),
        Column("code", "WHY", styles=REASON_STYLES),
        Column("client_id", "CLIENT"),
        Column("attempt", "ATTEMPT", right=True),
        Column("sentence", "IN WORDS"),
    ),
    lambda item: str(item["group"]),
)


async def standings_of(client: "Client", found: Found) -> list[Item]:
    """Of the first few groups whose filter takes the record; a group that goes meanwhile is out."""
    groups = await client.groups.list()
    readers = [
        f"{group.name}@{group.filter}"
        for group in groups
        if TopicFilter.parse(group.filter).matches(found.subject)
    ]
    standings: list[Item] = []
    for group in readers[:GROUPS_OF_A_RECORD]:
        try:
            answer = await client.groups.why(group, stream=found.stream, offset=found.offset)
        except DssError:
            # It was removed, or never came to this stream.
            continue
        standings += (item_of("GroupStanding", each, group=group) for each in answer.records)
    return standings
