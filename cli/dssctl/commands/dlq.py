"""``dssctl dlq``: dead letters of groups."""

from typing import Annotated

import typer

from dss_core.limits import REDRIVE_RATE, REDRIVE_RATE_MAX
from dssctl.arguments import GroupName
from dssctl.changing import Changing, Removing, carry_out
from dssctl.listing import listing
from dssctl.nouns.queues import DEAD_KIND, ERROR_KIND, KEY_KIND, PEEK_KIND, QUEUE_PAGE_KIND
from dssctl.queue_choices import (
    ENTRIES_PEEKED,
    AllOf,
    Attempts,
    Exact,
    FromTime,
    OfError,
    OfKey,
    OfMember,
    OfOrigin,
    Peeked,
    PeekedAs,
    Place,
    ToFile,
    ToTime,
    chosen,
    has_member,
)
from dssctl.queue_lists import (
    RULES,
    chosen_entries,
    list_entries,
    list_errors,
    list_keys,
)
from dssctl.queue_pages import describe_queue, export_entries, peek_at
from dssctl.records.payloads import Decoding
from dssctl.tree import noun, settings_of, showing

app = noun("dlq")


@app.command("ls", cls=listing(DEAD_KIND, RULES))
def list_dead_letters(
    context: typer.Context,
    group: GroupName,
    error: OfError = "",
    key: OfKey = None,
    origin: OfOrigin = "",
    member: OfMember = "",
    since: FromTime = None,
    until: ToTime = None,
    attempts: Attempts = 0,
) -> None:
    """List dead letters of a group, the newest last, after how many there are of each error."""
    named = chosen(context, None, error, key, origin, member, since, until)
    list_entries(context, chosen_entries(group, "dead", named, key, attempts))


@app.command(cls=listing(ERROR_KIND))
def errors(context: typer.Context, group: GroupName, exact: Exact = False) -> None:
    """Count the dead letters of a group by error, the most frequent first."""
    list_errors(context, group, "dead", exact=exact)


@app.command(cls=listing(KEY_KIND))
def keys(
    context: typer.Context, group: GroupName, error: OfError = "", exact: Exact = False
) -> None:
    """Count the dead letters of a group by key, the most frequent first."""
    list_keys(context, group, "dead", error, exact=exact)


@app.command(cls=showing(QUEUE_PAGE_KIND))
def describe(context: typer.Context, group: GroupName) -> None:
    """Show the dead letters of a group on a page: by error, by key, and what to do next."""
    describe_queue(settings_of(context), group, "dead")


@app.command(cls=showing(PEEK_KIND))
def peek(
    context: typer.Context,
    group: GroupName,
    place: Place = None,
    error: OfError = "",
    key: OfKey = None,
    origin: OfOrigin = "",
    member: OfMember = "",
    since: FromTime = None,
    until: ToTime = None,
    attempts: Attempts = 0,
    number: Peeked = ENTRIES_PEEKED,
    decoding: PeekedAs = Decoding.AUTO,
) -> None:
    """Show dead letters whole: what each was, and why it died."""
    named = chosen(context, place, error, key, origin, member, since, until)
    peek_at(
        settings_of(context), chosen_entries(group, "dead", named, key, attempts), number, decoding
    )


@app.command(cls=showing(PEEK_KIND))
def export(
    context: typer.Context,
    group: GroupName,
    file: ToFile = "-",
    error: OfError = "",
    key: OfKey = None,
    origin: OfOrigin = "",
    member: OfMember = "",
    since: FromTime = None,
    until: ToTime = None,
) -> None:
    """Write dead letters as JSON, a line each, with payloads; they stay where they are."""
    named = chosen(context, None, error, key, origin, member, since, until)
    export_entries(settings_of(context), chosen_entries(group, "dead", named, key), file)


@app.command(cls=Changing)
def redrive(
    context: typer.Context,
    group: GroupName,
    place: Place = None,
    error: OfError = "",
    key: OfKey = None,
    origin: OfOrigin = "",
    member: OfMember = "",
    since: FromTime = None,
    until: ToTime = None,
    rate: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=REDRIVE_RATE_MAX,
            help=f"At most so many a second, of all streams together, instead of {REDRIVE_RATE:,}.",
        ),
    ] = None,
    canary: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Bring back this many first, the others only if none of these fails."
        ),
    ] = None,
    canary_percent: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="Or if no more than this share of them does."),
    ] = 0,
    unordered: Annotated[
        bool,
        typer.Option(
            "--unordered", help="In an ordered group: only these, without the rest of their keys."
        ),
    ] = False,
) -> None:
    """Deliver dead letters again: as a first attempt, due at once. All where nothing is named."""
    from dss_client.changes import RedriveDeadLetters

    change = RedriveDeadLetters(
        group,
        **chosen(context, place, error, key, origin, member, since, until),
        rate=rate,
        unordered=unordered,
        canary=canary,
        canary_percent=canary_percent,
    )
    carry_out(context, change, has_end=has_member)


@app.command(cls=Removing)
def discard(
    context: typer.Context,
    group: GroupName,
    place: Place = None,
    error: OfError = "",
    key: OfKey = None,
    origin: OfOrigin = "",
    member: OfMember = "",
    since: FromTime = None,
    until: ToTime = None,
    everything: AllOf = False,
) -> None:
    """Give dead letters up for good; name which, or --all. This cannot be undone."""
    from dss_client.changes import DiscardDeadLetters

    named = chosen(context, place, error, key, origin, member, since, until)
    carry_out(context, DiscardDeadLetters(group, **named, everything=everything))
