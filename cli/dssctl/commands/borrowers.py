"""``dssctl borrowers``: members of groups."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from dss_core.errors import BorrowerNotFound
from dss_core.times import parse_span_ms
from dssctl.arguments import GroupName, GroupToo, OfGroup, of_one_group
from dssctl.changing import Changing, carry_out
from dssctl.connection import ask
from dssctl.items import item_of
from dssctl.listing import list_items, listing
from dssctl.nouns.grants import GROUP_GRANT_KIND, grant_item
from dssctl.nouns.groups import BORROWER_KIND
from dssctl.output import Column, Item, Kind, Section, show_one
from dssctl.page import page
from dssctl.selection import ListRules, Wanted
from dssctl.tree import noun, settings_of

if TYPE_CHECKING:
    from dss_client import Client, GroupDescription

GROUPS_DESCRIBED_AT_ONCE = 16
"""How many groups a list of all members asks about at once: enough to hide the round trip, and few
of the daemon's calls."""


app = noun("borrowers")

BorrowerName = Annotated[
    str, typer.Argument(metavar="BORROWER", help="Its id, or the id of its client.")
]

MEMBER_KIND = Kind(
    BORROWER_KIND.name,
    (Column("group", "GROUP"), *BORROWER_KIND.columns),
    BORROWER_KIND.identity,
)


@app.command("ls", cls=listing(MEMBER_KIND, ListRules(remembered="borrowers")))
def list_borrowers(context: typer.Context, named: GroupToo = None, group: OfGroup = None) -> None:
    """List the members of groups: what they hold, how far they are behind, how quick they are."""
    group = of_one_group(context, named, group)

    async def borrowers(client: "Client", _wanted: Wanted) -> list[Item]:
        described = (
            await _every_group(client) if group is None else [await client.groups.describe(group)]
        )
        return [item for each in described for item in _members(each)]

    list_items(context, borrowers, whole=group is None)


@app.command(cls=page(MEMBER_KIND))
def describe(context: typer.Context, group: GroupName, borrower: BorrowerName) -> None:
    """Show a member, and the streams that it holds."""
    settings = settings_of(context)

    async def member(client: "Client") -> Item:
        description = await client.groups.describe(group)
        for item in _members(description):
            if borrower in {item["borrower_id"], item["client_id"]}:
                held = (each for each in description.grants if each.client_id == item["client_id"])
                return {**item, "grants": [grant_item(each) for each in held]}
        raise BorrowerNotFound(group=group, borrower=borrower)

    show_one(settings, MEMBER_KIND, ask(settings, member), [Section("grants", GROUP_GRANT_KIND)])


@app.command(cls=Changing)
def evict(
    context: typer.Context,
    group: GroupName,
    borrower: BorrowerName,
    grace: Annotated[
        str | None,
        typer.Option(metavar="SPAN", help="Time to settle its records in flight, such as 30s."),
    ] = None,
    ban: Annotated[
        str | None,
        typer.Option(
            metavar="SPAN", help="Keep the client out of the group this long, such as 1h."
        ),
    ] = None,
) -> None:
    """End a member's subscription; others get its streams."""
    from dss_client.changes import Evict

    grace_ms = None if grace is None else parse_span_ms(grace)
    ban_ms = None if ban is None else parse_span_ms(ban)
    carry_out(context, Evict(group, borrower, grace_ms, ban_ms))


def _members(description: "GroupDescription") -> list[Item]:
    group = f"{description.group.name}@{description.group.filter}"
    return [{"group": group, **item_of("Borrower", each)} for each in description.borrowers]


async def _every_group(client: "Client") -> "list[GroupDescription]":
    """The members of all groups, asked for a few groups at a time."""
    groups = await client.groups.list(filter="borrowers>0")
    names = [f"{group.name}@{group.filter}" for group in groups]
    described: list[GroupDescription] = []
    for some in _batches(names):
        described += await asyncio.gather(*map(client.groups.describe, some))
    return described


def _batches(names: list[str]) -> list[list[str]]:
    size = GROUPS_DESCRIBED_AT_ONCE
    return [names[at : at + size] for at in range(0, len(names), size)]
