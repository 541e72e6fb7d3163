"""``dssctl offsets``: how far groups are, and moving them."""

import time
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from dssctl.arguments import GroupName
from dssctl.changing import Changing, carry_out
from dssctl.commands.grants import list_grants
from dssctl.connection import ask
from dssctl.documents import (
    Fields,
    list_of,
    number_of,
    numbers_of,
    objects_of,
    read_document,
    text_of,
)
from dssctl.items import item_of
from dssctl.listing import listing
from dssctl.nouns.grants import GRANT_KIND
from dssctl.output import Column, Instant, Item, Kind, Section, show_one
from dssctl.quantities import distance
from dssctl.settings import Format
from dssctl.tree import noun, settings_of, showing

if TYPE_CHECKING:
    from dss_client import GroupOffsets, StreamOffsets

app = noun("offsets")
app.command(
    "ls",
    cls=listing(GRANT_KIND),
    help="List how far groups are in each stream: what dssctl grants ls shows.",
)(list_grants)

To = Annotated[
    str | None,
    typer.Option(
        metavar="TARGET",
        help="earliest, latest, a time (-15m, a date, RFC 3339, @unix), or =OFFSET of one stream.",
    ),
]
Back = Annotated[
    str | None,
    typer.Option(metavar="DISTANCE", help="A number of records back, 100, or a span, 15m."),
]
Forward = Annotated[
    str | None,
    typer.Option(metavar="DISTANCE", help="A number of records forward, 100, or a span, 15m."),
]
Either = Annotated[
    str | None,
    typer.Option(
        metavar="DISTANCE", help="Records or a span, forward: 100, 15m; back: -100, -15m."
    ),
]
Streams = Annotated[
    list[str] | None,
    typer.Option("--stream", metavar="STREAM", help="Only this one, orders/0/3; may be repeated."),
]

OFFSETS_KIND = Kind(
    "GroupOffsets",
    (
        Column("group", "GROUP"),
        Column("exported_at", "EXPORTED", cell=lambda item, _now_us: _moment(item["exported_at"])),
    ),
    lambda item: str(item["group"]),
)
STREAM_OFFSETS_KIND = Kind(
    "StreamOffsets",
    (
        Column("topic", "TOPIC"),
        Column("ordinal", "ORDINAL", right=True),
        Column("partition", "PARTITION", right=True),
        Column("partitions", "PARTITIONS", right=True),
        Column("floor", "FLOOR", right=True),
        Column("end", "END", right=True),
        Column("acked", "ACKED-ABOVE", cell=lambda item, _now_us: _ranges(item["acked"])),
    ),
    lambda item: f"{item['topic']}/{item['ordinal']}/{item['partition']}",
)


@app.command(cls=Changing)
def rewind(
    context: typer.Context, group: GroupName, to: To = None, by: Back = None, stream: Streams = None
) -> None:
    """Send records again from a target on; none is skipped."""
    back = None if by is None else -_unsigned(by)
    _move(context, group, "rewind", to, back, stream)


@app.command(cls=Changing)
def skip(
    context: typer.Context,
    group: GroupName,
    to: To = None,
    by: Forward = None,
    stream: Streams = None,
) -> None:
    """Pass over records, up to a target; none comes again."""
    forward = None if by is None else _unsigned(by)
    _move(context, group, "skip", to, forward, stream)


@app.command(cls=Changing)
def seek(
    context: typer.Context,
    group: GroupName,
    to: To = None,
    by: Either = None,
    stream: Streams = None,
) -> None:
    """Move the group to a target: records before it are skipped, those behind it are sent."""
    _move(context, group, "seek", to, None if by is None else distance(by), stream)


@app.command("export", cls=showing(OFFSETS_KIND))
def export(context: typer.Context, group: GroupName, stream: Streams = None) -> None:
    """Print where a group stands, for offsets import: as JSON, unless another format is asked."""
    settings = settings_of(context)
    offsets = ask(settings, lambda client: client.groups.offsets(group, streams=stream or ()))
    if settings.format is Format.TABLE:
        settings.format = Format.JSON
    sections = [Section("streams", STREAM_OFFSETS_KIND)]
    show_one(settings, OFFSETS_KIND, _offsets_item(offsets), sections)


@app.command("import", cls=Changing)
def import_offsets(
    context: typer.Context,
    group: GroupName,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="What offsets export wrote; - is standard input.")
    ],
) -> None:
    """Set the progress of a group to that of the exported one, stream by stream."""
    from dss_client.changes import ImportOffsets

    streams = read_document(
        file,
        OFFSETS_KIND.name,
        "a file of exported offsets",
        "dssctl offsets export GROUP > FILE",
        _streams_of,
    )
    carry_out(context, ImportOffsets(group, streams))


def _move(
    context: typer.Context,
    group: str,
    direction: str,
    to: str | None,
    by: int | timedelta | None,
    streams: list[str] | None,
) -> None:
    from dss_client.changes import MoveCursors

    if (to is None) == (by is None):
        raise typer.BadParameter("say either where --to, or by how much --by.", ctx=context)
    carry_out(context, MoveCursors(group, direction, to, by, tuple(streams or ())))


def _unsigned(text: str) -> int | timedelta:
    if text[:1] in {"+", "-"}:
        raise typer.BadParameter(f"'{text}' has a sign; the verb says which way it goes.")
    return distance(text)


def _offsets_item(offsets: "GroupOffsets") -> Item:
    streams = [_stream_item(each) for each in offsets.streams]
    now = Instant(time.time_ns() // 1_000)
    return item_of("GroupOffsets", offsets, exported_at=now, streams=streams)


def _stream_item(offsets: "StreamOffsets") -> Item:
    acked = [list(each) for each in offsets.progress.ranges]
    return item_of("StreamOffsets", offsets, acked=acked)


def _streams_of(item: Fields) -> "tuple[StreamOffsets, ...]":
    from dss_client import StreamOffsets
    from dss_core.progress import Progress, normalised

    def offsets(stream: Fields) -> StreamOffsets:
        pairs = (numbers_of(each, "acked", 2) for each in list_of(stream, "acked"))
        ranges = normalised((start, end) for start, end in pairs)
        return StreamOffsets(
            topic=text_of(stream, "topic"),
            ordinal=number_of(stream, "ordinal"),
            partition=number_of(stream, "partition"),
            partitions=number_of(stream, "partitions"),
            progress=Progress(number_of(stream, "floor")).with_acked(ranges),
            end=number_of(stream, "end"),
        )

    return tuple(offsets(stream) for stream in objects_of(item, "streams"))


def _moment(value: object) -> str:
    assert isinstance(value, Instant)
    return value.rfc3339()


def _ranges(value: object) -> str:
    assert isinstance(value, list)
    return " ".join(f"{start}-{end - 1}" for start, end in value)
