"""``dssctl records``: single records: look at them, find them, skip them, let them come again."""

from typing import Annotated

import typer

from dss_core.errors import IllegalArgument
from dssctl.arguments import GroupName, StreamName
from dssctl.changing import Changing, carry_out
from dssctl.limits import RECORDS_PEEKED_MAX
from dssctl.listing import list_items, listing
from dssctl.records.kinds import PAGE_KIND, PLACED_KIND, SKIPPED_KIND, STORED_KIND
from dssctl.records.payloads import Decoding
from dssctl.tree import noun, settings_of, showing

RECORDS_PEEKED = 10
"""How many records are shown, unless more are asked for: they fit on a screen."""

RECORDS_FOUND = 100
"""How many records a search finds before it ends, unless more are asked for."""

RECORDS_LOOKED_AT = 10_000_000
"""How many records a search looks at, unless more are asked for: about a minute."""


app = noun("records")

Place = Annotated[str, typer.Argument(metavar="TOPIC", help="orders, or a stream: orders/0/3.")]
OneStream = Annotated[
    str | None, typer.Option("--stream", metavar="STREAM", help="Only this one, orders/0/3.")
]
As = Annotated[
    Decoding,
    typer.Option("--as", metavar="HOW", help="text, json or hex; auto (default) detects it."),
]


@app.command(cls=showing(STORED_KIND))
def peek(
    context: typer.Context,
    topic: Place,
    stream: OneStream = None,
    offset: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Begin at this offset of one stream."),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Begin then: earliest, -15m, a date, RFC 3339, @unix."),
    ] = None,
    last: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, max=RECORDS_PEEKED_MAX, help="The newest so many, as where absent."
        ),
    ] = None,
    number: Annotated[
        int,
        typer.Option(
            "-n",
            "--number",
            metavar="N",
            min=1,
            max=RECORDS_PEEKED_MAX,
            help="At most this many, with --offset or --at.",
        ),
    ] = RECORDS_PEEKED,
    decoding: As = Decoding.AUTO,
) -> None:
    """Look at records without joining a group; nobody notices."""
    from dssctl.records.questions import Peek, peek

    if sum(given is not None for given in (offset, at, last)) > 1:
        raise typer.BadParameter("--offset, --at and --last exclude each other.", ctx=context)
    peek(settings_of(context), Peek(topic, stream, offset, at, last, number, decoding))


@app.command(cls=showing(STORED_KIND, PLACED_KIND))
def find(
    context: typer.Context,
    topic: Place,
    stream: OneStream = None,
    offset: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Of one stream: begin at this offset.")
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Only records with this key; reads its partition only."),
    ] = None,
    match: Annotated[
        str | None,
        typer.Option(
            metavar="REGEX", help="Only records whose payload matches; (?i) ignores case."
        ),
    ] = None,
    subject: Annotated[
        str | None,
        typer.Option(metavar="FILTER", help="Only records of these subjects: orders/+/eu."),
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[=VALUE]", help="Only records with this header; may be repeated."
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Appended then or later: -15m, a date, RFC 3339, @unix."),
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Appended before then.")] = None,
    group: Annotated[
        str | None,
        typer.Option(
            "--group", metavar="GROUP", help="Say where each is for it; find in its queues too."
        ),
    ] = None,
    number: Annotated[
        int, typer.Option("-n", "--number", metavar="N", min=1, help="Stop after so many.")
    ] = RECORDS_FOUND,
    look_at: Annotated[
        int, typer.Option("--look-at", metavar="N", min=1, help="Look at so many at most.")
    ] = RECORDS_LOOKED_AT,
    decoding: As = Decoding.AUTO,
) -> None:
    """Find records by key, payload, subject, header or time; all that is given must hold.

    With --group each says where it is for that group: out, waiting to be tried again, dead, done,
    skipped. What retention took of the topic, and a queue of the group still has, is found too.
    """
    from dssctl.records.looking import RecordsWanted
    from dssctl.records.patterns import Pattern
    from dssctl.records.questions import Find, find

    if all(each is None for each in (key, match, subject, header, since, until)):
        reason = "name what to find: --key, --match, --subject, --header, --since or --until."
        raise typer.BadParameter(reason, ctx=context)
    wanted = RecordsWanted(
        key=None if key is None else key.encode(errors="surrogateescape"),
        pattern=None if match is None else Pattern(match),
        headers=tuple(_header(each) for each in header or ()),
        subject=subject,
    )
    asked = Find(topic, stream, offset, wanted, since, until, number, look_at, decoding, group)
    find(settings_of(context), asked)


@app.command(cls=showing(PAGE_KIND))
def get(
    context: typer.Context,
    stream: StreamName,
    offset: Annotated[int, typer.Argument(metavar="OFFSET", min=0, help="The record's offset.")],
    decoding: As = Decoding.AUTO,
) -> None:
    """Show one record whole, and where it stands for the groups that read it."""
    from dssctl.records.questions import get

    get(settings_of(context), stream, offset, decoding)


@app.command(cls=Changing)
def skip(
    context: typer.Context,
    group: GroupName,
    stream: Annotated[
        str | None,
        typer.Argument(
            metavar="STREAM", help="Such as orders/0/3; with --key a topic too, or nothing for all."
        ),
    ] = None,
    offsets: Annotated[
        list[str] | None,
        typer.Argument(metavar="OFFSET...", help="The records' offsets: 7, or 7-9 with both ends."),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Instead of offsets: all open records with this key."),
    ] = None,
    count: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="So many from one offset on.")
    ] = None,
) -> None:
    """Acknowledge records for a group by hand: the way past those that nobody can handle."""
    from dss_client.changes import SkipRecords
    from dssctl.records.skipping import spans_of_key, spans_typed

    if key is not None:
        if offsets or count is not None:
            raise typer.BadParameter("--key finds the offsets: name none.", ctx=context)
        spans = spans_of_key(settings_of(context), group, stream, key)
    elif stream is None or not offsets:
        raise typer.BadParameter("name STREAM and OFFSET, or --key.", ctx=context)
    else:
        spans = spans_typed(stream, offsets, count)
    first, *more = spans
    carry_out(context, SkipRecords(group, first.stream, first.offset, first.count, tuple(more)))


@app.command(cls=Changing)
def redeliver(
    context: typer.Context,
    group: GroupName,
    stream: StreamName,
    offsets: Annotated[
        list[str],
        typer.Argument(metavar="OFFSET...", help="The records' offsets: 7, or 7-9 with both ends."),
    ],
) -> None:
    """Deliver single records once more, also those acknowledged long ago; no cursor moves."""
    from dss_client.changes import RedeliverRecords
    from dssctl.records.skipping import spans_typed

    first, *more = spans_typed(stream, offsets, None)
    change = RedeliverRecords(group, first.stream, first.offset, first.count, tuple(more))
    carry_out(context, change)


@app.command("skipped", cls=listing(SKIPPED_KIND))
def list_skipped(context: typer.Context, group: GroupName) -> None:
    """List records that operators skipped or gave up for a group, and by which operation."""
    from dssctl.records.skipped import skipped_by_hand

    list_items(context, lambda client, _wanted: skipped_by_hand(client, group))


def _header(text: str) -> tuple[str, bytes | None]:
    name, given, value = text.partition("=")
    if not name:
        raise IllegalArgument(argument=f"the header {text!r}", rule="write NAME or NAME=VALUE")
    return name, value.encode(errors="surrogateescape") if given else None
