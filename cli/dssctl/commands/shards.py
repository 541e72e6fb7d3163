"""``dssctl shards``: the slices in which an ordered group's streams are shared out."""

from typing import TYPE_CHECKING, Annotated

import typer

from dss_core.counted import counted
from dss_core.errors import IllegalArgument
from dssctl.arguments import GroupName
from dssctl.changing import Changing, carry_out
from dssctl.connection import ask
from dssctl.listing import list_items, listing
from dssctl.nouns.grants import GROUP_GRANT_KIND, grant_item
from dssctl.nouns.shards import SHARD_KIND, shard_item
from dssctl.output import Item, Section, note, show_one
from dssctl.page import page
from dssctl.pages.verdict import named
from dssctl.selection import Wanted
from dssctl.settings import Format
from dssctl.tree import noun, settings_of

if TYPE_CHECKING:
    from dss_client import Client, ShardedGroup

app = noun("shards")


@app.command("ls", cls=listing(SHARD_KIND))
def list_shards(context: typer.Context, group: GroupName) -> None:
    """List the shards of a group: their partitions, their holders and their lag."""
    settings = settings_of(context)
    found: list[ShardedGroup] = []

    async def shards(client: "Client", _wanted: Wanted) -> list[Item]:
        sharded = await client.groups.shards(group)
        found[:] = [sharded]
        return [shard_item(sharded, each) for each in sharded.each]

    list_items(context, shards)
    for sharded in found:
        for told in _notes(sharded):
            note(settings, told)


def _notes(sharded: "ShardedGroup") -> list[str]:
    """Facts that the rows themselves do not show."""
    told = []
    if sharded.better:
        nearest = " or ".join(map(str, sharded.better))
        told.append(f"even and aligned, and near {sharded.shards}: {nearest}")
    if sharded.without:
        what = counted(len(sharded.without), "member has", "members have")
        told.append(f"{what} no shard, and stand by: {', '.join(sharded.without)}")
    return told


@app.command(cls=page(SHARD_KIND))
def describe(
    context: typer.Context,
    group: GroupName,
    shard: Annotated[int, typer.Argument(metavar="SHARD", min=0, help="Its number, from 0.")],
) -> None:
    """Show one shard of a group, with each of its streams."""
    settings = settings_of(context)

    async def look(client: "Client") -> Item:
        sharded = await client.groups.shards(group)
        if shard >= sharded.shards:
            rule = f"{sharded.group} has {counted(sharded.shards, 'shard')}: 0 to "
            raise IllegalArgument(argument=f"shard {shard}", rule=f"{rule}{sharded.shards - 1}")
        own = sharded.each[shard]
        grants = await client.grants.list(f"{sharded.group}@{sharded.filter}")
        rows = [grant_item(grant) for grant in grants if grant.stream in own.streams]
        return {**shard_item(sharded, own), "grants": rows}

    item = ask(settings, look)
    show_one(settings, SHARD_KIND, item, [Section("grants", GROUP_GRANT_KIND)])
    if settings.format is Format.TABLE:
        group_named = named(f"{item['group']}@{item['filter']}")
        note(settings, f"next: dssctl shards ls {group_named}")


@app.command("set-count", cls=Changing)
def set_count(
    context: typer.Context,
    group: GroupName,
    count: Annotated[int, typer.Argument(metavar="COUNT", help="The number of shards.")],
) -> None:
    """Cut the streams of a group into another number of shards; what stays is not touched."""
    from dss_client.changes import SetShardCount

    if count < 0:
        raise typer.BadParameter("a group has 1 shard at least.", param_hint="'COUNT'")
    carry_out(context, SetShardCount(group, count))
