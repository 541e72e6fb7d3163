"""``dssctl leaders``: the leader of each group, and since when it leads."""

from typing import TYPE_CHECKING, Annotated

import typer

from dssctl.arguments import GroupName
from dssctl.connection import ask
from dssctl.items import item_of
from dssctl.listing import list_items, listing
from dssctl.nouns.grants import LED_STREAM_KIND
from dssctl.nouns.groups import LEADER_KIND
from dssctl.output import Instant, Item, Section, note, show_one
from dssctl.page import page
from dssctl.pages.verdict import named
from dssctl.selection import ListRules, Named, Wanted
from dssctl.settings import Format
from dssctl.tree import noun, settings_of

if TYPE_CHECKING:
    from dss_client import Client, DaemonStatus, Grant, Group

app = noun("leaders")


RULES = ListRules(named=Named("[GROUP]", ("group",), behind="@*"))


@app.command("ls", cls=listing(LEADER_KIND, RULES))
def list_leaders(
    context: typer.Context,
    every: Annotated[
        bool, typer.Option("-a", "--all", help="Also groups without a leader.")
    ] = False,
) -> None:
    """List the leaders that run: one a group with members, and what each leads."""
    others = 0

    async def leaders(client: "Client", _wanted: Wanted) -> list[Item]:
        nonlocal others
        groups, status = await client.groups.list(), await client.daemon.status()
        leading = [group for group in groups if every or group.leader_since_ms is not None]
        others = len(groups) - len(leading)
        return [leader_item(group, status) for group in leading]

    list_items(context, leaders)
    if others:
        told = f"{others} groups have no leader, because nobody is a member; --all"
        note(settings_of(context), told)


@app.command(cls=page(LEADER_KIND))
def describe(context: typer.Context, group: GroupName) -> None:
    """Show a group's leader: its epoch, and each stream with its grant."""
    settings = settings_of(context)

    async def look(client: "Client") -> "tuple[Item, tuple[Grant, ...]]":
        described = await client.groups.describe(group)
        return leader_item(described.group, await client.daemon.status()), described.grants

    leader, grants = ask(settings, look)
    now_us = settings.clock_us()
    item = {**leader, "grants": [_stream_item(grant, now_us) for grant in grants]}
    show_one(settings, LEADER_KIND, item, [Section("grants", LED_STREAM_KIND)])
    if settings.format is Format.TABLE:
        note(settings, f"next: dssctl groups describe {named(str(leader['group']))}")


def leader_item(group: "Group", status: "DaemonStatus") -> Item:
    """The leader of a group as the renderer takes it; one that ended keeps its last epoch."""
    since_ms = group.leader_since_ms
    leads = since_ms is not None
    return item_of(
        "Leader",
        group,
        group=f"{group.name}@{group.filter}",
        state="leading" if leads else "none",
        epoch=group.leader_epoch,
        since=None if since_ms is None else Instant.of_ms(since_ms),
        members=group.borrowers,
        daemon=status.boot_id if leads else None,
        pid=status.pid if leads else None,
    )


def _stream_item(grant: "Grant", now_us: int) -> Item:
    since = Instant(now_us - grant.state_age_ms * 1_000) if grant.state_age_ms else None
    return item_of("LedStream", grant, since=since)
