"""``dssctl dlq``: dead letters of groups."""

from typing import TYPE_CHECKING, Annotated

import typer

from dss_core.limits import REDRIVE_RATE, REDRIVE_RATE_MAX
from dssctl.arguments import GroupName
from dssctl.changing import Changing, Removing, carry_out
from dssctl.connection import ask
from dssctl.limits import RECORDS_PEEKED_MAX
from dssctl.listing import listing
from dssctl.nouns.queues import DEAD_KIND, ERROR_KIND, PAGE_KIND, PEEK_KIND, whole_item
from dssctl.output import Section, note, show_list, show_one
from dssctl.queue_choices import (
    AllOf,
    FromTime,
    OfError,
    OfKey,
    OfMember,
    OfOrigin,
    Place,
    ToTime,
    chosen,
    has_member,
    place_of,
)
from dssctl.queue_lists import RULES, Chosen, list_entries, list_errors
from dssctl.records.payloads import Decoding, payload_lines
from dssctl.settings import Format, Settings
from dssctl.tree import noun, settings_of, showing

if TYPE_CHECKING:
    from dss_client import QueueEntry

app = noun("dlq")

DEAD_LETTERS_PEEKED = 5
"""Shown where nobody says how many: payloads take a screen soon."""


@app.command("ls", cls=listing(DEAD_KIND, RULES))
def list_dead_letters(
    context: typer.Context,
    group: GroupName,
    error: OfError = "",
    key: OfKey = None,
    origin: OfOrigin = "",
) -> None:
    """List dead letters of a group, the newest last, after how many there are of each error."""
    list_entries(context, Chosen(group, "dead", error, key, origin))


@app.command(cls=listing(ERROR_KIND))
def errors(context: typer.Context, group: GroupName) -> None:
    """Count the dead letters of a group by error, the most frequent first."""
    list_errors(context, group, "dead")


@app.command(cls=showing(PEEK_KIND))
def peek(
    context: typer.Context,
    group: GroupName,
    place: Place = None,
    number: Annotated[
        int,
        typer.Option(
            "-n", "--number", metavar="N", min=1, max=RECORDS_PEEKED_MAX, help="The newest so many."
        ),
    ] = DEAD_LETTERS_PEEKED,
    decoding: Annotated[
        Decoding,
        typer.Option(
            "--as", metavar="HOW", help="text, json or hex; auto, as where absent, finds it out."
        ),
    ] = Decoding.AUTO,
) -> None:
    """Show dead letters whole: what each was, and why it died."""
    stream, offset = place_of(context, place)
    settings = settings_of(context)
    found = ask(
        settings,
        lambda client: client.queues.peek(group, stream=stream, offset=offset, newest=number),
    )
    if len(found) == 1:
        _show_page(settings, found[0], decoding)
        return
    show_list(settings, PEEK_KIND, [whole_item(each, decoding) for each in found])
    if not found:
        note(settings, f"there is no dead letter of {place or group}")


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
            metavar="N", help="So many first; the others only if none of these fails again."
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
    """Let dead letters come again: the first attempt, due at once. All where nothing is named."""
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
    """Give dead letters up for good; which has to be said. This cannot be undone."""
    from dss_client.changes import DiscardDeadLetters

    named = chosen(context, place, error, key, origin, member, since, until)
    carry_out(context, DiscardDeadLetters(group, **named, everything=everything))


def _show_page(settings: Settings, entry: "QueueEntry", decoding: Decoding) -> None:
    item = whole_item(entry, decoding)
    if settings.format not in {Format.TABLE, Format.WIDE}:
        show_one(settings, PAGE_KIND, item)
        return
    content = list(payload_lines(entry.payload, decoding))
    show_one(settings, PAGE_KIND, {**item, "content": content}, [Section("content")])
