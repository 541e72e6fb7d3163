"""``dssctl groups``: the shared subscriptions."""

from typing import TYPE_CHECKING, Annotated

import typer

from dss_core.counted import counted
from dss_core.errors import GroupMisspelt, GroupNotFound
from dss_core.times import parse_span_ms, text_of_span
from dssctl.arguments import (
    AckWait,
    Allocation,
    Backoff,
    GroupName,
    GroupStart,
    IfExists,
    Keyless,
    MaxDeliver,
    MaxDeliverOfNew,
    OnDeadLetter,
    Ordered,
    Protocol,
    QueueBytes,
    QueueRecords,
    Shards,
)
from dssctl.changing import Changing, Removing, Writing, carry_out
from dssctl.confirm import confirm_name_if_protected
from dssctl.connection import ask
from dssctl.creation import note_differences, show_created
from dssctl.group_questions import stuck, verify, why
from dssctl.items import item_of
from dssctl.listing import list_items, listing
from dssctl.nouns.answers import STANDING_KIND, STUCK_KIND, VERIFIED_KIND
from dssctl.nouns.grants import GROUP_GRANT_KIND, grant_item
from dssctl.nouns.groups import BORROWER_KIND, GROUP_KIND, group_item
from dssctl.output import Item, Section
from dssctl.page import page
from dssctl.quantities import moment_ms, size_bytes, spans_ms
from dssctl.removal import accepting, showing_removal
from dssctl.selection import ListRules, Named, Wanted
from dssctl.tree import noun, settings_of, showing

if TYPE_CHECKING:
    from dss_client import Client, Group

app = noun("groups")


RULES = ListRules(in_daemon=True, remembered="groups", named=Named("[GROUP]", ("name", "filter")))


@app.command("ls", cls=listing(GROUP_KIND, RULES))
def list_groups(
    context: typer.Context,
    every: Annotated[
        bool, typer.Option("-a", "--all", help="Private subscriptions of sessions too.")
    ] = False,
) -> None:
    """List groups, with their lag: records that are not acknowledged."""

    async def groups(client: "Client", wanted: Wanted) -> list[Item]:
        found = await client.groups.list(all=every, filter=wanted.filter, sort=wanted.sort)
        return [group_item(group) for group in found]

    list_items(context, groups)


@app.command(cls=showing(GROUP_KIND, command=Writing))
def create(
    context: typer.Context,
    group: Annotated[
        str,
        typer.Argument(
            metavar="GROUP", help="NAME@FILTER, '$share/NAME/FILTER' or '$queue/NAME/FILTER'."
        ),
    ],
    start: GroupStart = None,
    ack_wait: AckWait = None,
    protocol: Protocol = None,
    on_damage: Annotated[
        str | None,
        typer.Option(metavar="CHOICE", help="pass over damaged records (default), or stall."),
    ] = None,
    max_deliver: MaxDeliverOfNew = None,
    backoff: Backoff = None,
    queue_records: QueueRecords = None,
    queue_bytes: QueueBytes = None,
    ordered: Ordered = False,
    on_dead_letter: OnDeadLetter = None,
    keyless: Keyless = None,
    shards: Shards = None,
    allocation: Allocation = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Accept one that exists, as it is.")
    ] = False,
) -> None:
    """Declare a group before its first member comes."""
    settings = settings_of(context)
    written = subscription_filter(group)
    confirm_name_if_protected(settings, f"Creating the group {group}", group)
    ack_wait_s = parse_span_ms(ack_wait) / 1_000 if ack_wait else None
    backoff_s = [each_ms / 1_000 for each_ms in spans_ms(backoff)] if backoff else ()
    bytes_max = size_bytes(queue_bytes) if queue_bytes else None

    async def look_and_create(client: "Client") -> "Group":
        from dssctl.advice import note_unmatched

        await note_unmatched(client, settings, written)
        return await client.groups.create(
            written,
            start=start,
            ack_wait=ack_wait_s,
            if_not_exists=if_not_exists,
            protocol=protocol,
            on_damage=on_damage,
            max_deliver=max_deliver,
            backoff=backoff_s,
            queue_records=queue_records,
            queue_bytes=bytes_max,
            ordered=ordered or None,
            on_dead_letter=on_dead_letter,
            keyless=keyless,
            allocation=allocation,
            shards=shards,
        )

    item = group_item(ask(settings, look_and_create))
    if if_not_exists:
        _note_other_wait(context, f"The group {group}", ack_wait_s, item)
    show_created(settings, GROUP_KIND, item, _sentence(item), _next_command(item))


def _note_other_wait(
    context: typer.Context, group: str, ack_wait_s: float | None, item: Item
) -> None:
    """Notes about a group that existed with other settings than asked for."""
    asked = None if ack_wait_s is None else text_of_span(round(ack_wait_s * 1_000))
    has = text_of_span(int(str(item["ack_wait_ms"])))
    note_differences(context, settings_of(context), group, {"ack_wait": (asked, has)})


@app.command(cls=page(GROUP_KIND))
def describe(context: typer.Context, group: GroupName) -> None:
    """Show whether a group is healthy, what it is doing, and what to do next."""
    from dssctl.pages.group_page import group_look, show_group

    settings = settings_of(context)
    look = ask(settings, lambda client: group_look(client, group))
    grants = sorted(look.description.grants, key=lambda grant: -grant.lag)
    members = [item_of("Borrower", borrower) for borrower in look.description.borrowers]
    lists = [
        (Section("members", BORROWER_KIND), members),
        (Section("grants", GROUP_GRANT_KIND), [grant_item(grant) for grant in grants]),
    ]
    show_group(settings, GROUP_KIND, group_item(look.description.group), lists, look)


app.command(cls=showing(STANDING_KIND))(why)
app.command(cls=listing(STUCK_KIND))(stuck)
app.command(cls=showing(VERIFIED_KIND))(verify)


@app.command(cls=Changing)
def pause(
    context: typer.Context,
    group: GroupName,
    until: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="End of the pause: +30m, a date, RFC 3339, @unix."),
    ] = None,
) -> None:
    """Pause delivery; records in flight may be acknowledged, and members stay connected."""
    from dss_client.changes import PauseGroup

    now_us = settings_of(context).clock_us()
    until_ms = None if until is None else moment_ms(until, now_us=now_us)
    carry_out(context, PauseGroup(group, until_ms))


@app.command(cls=Changing)
def resume(context: typer.Context, group: GroupName) -> None:
    """End a pause."""
    from dss_client.changes import ResumeGroup

    carry_out(context, ResumeGroup(group))


@app.command(cls=Changing)
def rebalance(
    context: typer.Context,
    group: GroupName,
    max_moves: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Move so many streams at most.")
    ] = None,
) -> None:
    """Spread the streams evenly over the members; nothing acknowledged comes again."""
    from dss_client.changes import Rebalance

    carry_out(context, Rebalance(group, max_moves))


@app.command(cls=Changing)
def edit(
    context: typer.Context,
    group: GroupName,
    ack_wait: AckWait = None,
    on_damage: Annotated[
        str | None, typer.Option(metavar="CHOICE", help="pass over damaged records, or stall.")
    ] = None,
    max_deliver: MaxDeliver = None,
    backoff: Backoff = None,
    queue_records: QueueRecords = None,
    queue_bytes: QueueBytes = None,
    ordered: Ordered = False,
    on_dead_letter: OnDeadLetter = None,
    keyless: Keyless = None,
) -> None:
    """Change settings of a group; what is not named stays as it is."""
    from dss_client.changes import EditGroup

    edit = EditGroup(
        group,
        None if ack_wait is None else parse_span_ms(ack_wait),
        on_damage,
        max_deliver,
        spans_ms(backoff) if backoff else (),
        queue_records,
        size_bytes(queue_bytes) if queue_bytes else None,
        ordered or None,
        on_dead_letter,
        keyless,
    )
    if edit == EditGroup(group):
        raise typer.BadParameter(
            "name what to change: --ack-wait, --on-damage, --max-deliver, --backoff, "
            "--queue-records, --queue-bytes, --ordered, --on-dead-letter or --keyless.",
            ctx=context,
        )
    carry_out(context, edit)


@app.command("rm", cls=Removing)
def remove(
    context: typer.Context,
    group: GroupName,
    if_exists: IfExists = False,
) -> None:
    """Remove a group and its progress. This cannot be undone; its members get an error."""
    from dss_client.changes import RemoveGroup

    with accepting(context, GroupNotFound, group, if_exists=if_exists):
        carry_out(context, RemoveGroup(group), showing_removal(group))


def _sentence(group: Item) -> str:
    lag = f"{'' if group['lag_exact'] else 'at most '}{counted(int(str(group['lag'])), 'record')}"
    return (
        f"The group {group['name']}@{group['filter']} is there: it reads "
        f"{counted(int(str(group['streams'])), 'stream')} from {group['start']} on, {lag} to go."
    )


def _next_command(group: Item) -> str:
    from shlex import quote

    return f"dssctl consume {quote(str(group['filter']))} --group {group['name']}"


def subscription_filter(group: str) -> str:
    """The filter that names a group on the wire, from either spelling of the command line.

    Raises:
        GroupMisspelt: it is neither spelling.
    """
    if group.startswith("$"):
        return group
    name, at, topic_filter = group.partition("@")
    if not at or "/" in name:
        raise GroupMisspelt(group=group)
    return f"$share/{name}/{topic_filter}"
