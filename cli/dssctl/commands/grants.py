"""``dssctl grants``: which member reads which stream."""

from typing import TYPE_CHECKING, Annotated

import typer

from dssctl.arguments import GroupName, GroupToo, OfGroup, StreamName, of_one_group
from dssctl.changing import Changing, carry_out
from dssctl.listing import list_items, listing
from dssctl.nouns.grants import GRANT_KIND, ONE_GROUPS_GRANT_KIND, grant_item
from dssctl.output import Item
from dssctl.selection import Wanted
from dssctl.tree import noun

if TYPE_CHECKING:
    from dss_client import Client

app = noun("grants")


@app.command("ls", cls=listing(GRANT_KIND))
def list_grants(context: typer.Context, named: GroupToo = None, group: OfGroup = None) -> None:
    """List the streams of groups: who holds them and how far they were consumed."""
    group = of_one_group(context, named, group)

    async def grants(client: "Client", _wanted: Wanted) -> list[Item]:
        return [grant_item(grant) for grant in await client.grants.list(group)]

    list_items(context, grants, GRANT_KIND if group is None else ONE_GROUPS_GRANT_KIND)


@app.command(cls=Changing)
def transfer(
    context: typer.Context,
    group: GroupName,
    stream: StreamName,
    to: Annotated[
        str, typer.Option(metavar="BORROWER", help="The member's id, or the id of its client.")
    ],
) -> None:
    """Give one stream to a certain member, which keeps it until it leaves."""
    from dss_client.changes import TransferGrant

    carry_out(context, TransferGrant(group, stream, to))


@app.command(cls=Changing)
def revoke(context: typer.Context, group: GroupName, stream: StreamName) -> None:
    """Take one stream from its holder and give it to anybody else."""
    from dss_client.changes import RevokeGrant

    carry_out(context, RevokeGrant(group, stream))
