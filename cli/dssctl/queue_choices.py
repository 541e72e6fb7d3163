"""How commands on queues say which records they mean."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dss_core.ids import StreamName
from dss_core.times import Moment, parse_time
from dssctl.connection import ask
from dssctl.limits import RECORDS_PEEKED_MAX
from dssctl.output import note
from dssctl.records.payloads import Decoding
from dssctl.settings import Settings
from dssctl.tree import settings_of

if TYPE_CHECKING:
    from dss_client import Operation

OfError = Annotated[
    str,
    typer.Option(
        "--error",
        metavar="FINGERPRINT",
        help="Only of this error: its first digits, or a cause.",
    ),
]
OfKey = Annotated[
    str | None, typer.Option("--key", metavar="KEY", help="Only of records with this key.")
]
OfOrigin = Annotated[
    str, typer.Option("--origin", metavar="STREAM", help="Only of records of this stream.")
]
OfMember = Annotated[
    str, typer.Option("--member", metavar="CLIENT", help="Only what this client had last.")
]
FromTime = Annotated[
    str | None,
    typer.Option("--from", metavar="TIME", help="Only what failed then or later: -2h, a date."),
]
ToTime = Annotated[
    str | None, typer.Option("--to", metavar="TIME", help="Only what failed before then.")
]
Attempts = Annotated[
    int, typer.Option("--attempts", metavar="N", min=0, help="Only what failed so often, or more.")
]
Exact = Annotated[
    bool, typer.Option("--exact", help="Count all entries, not only the oldest 20,000.")
]
AllOf = Annotated[bool, typer.Option("--all", help="Every one that is there now.")]
Place = Annotated[
    str | None,
    typer.Argument(metavar="[STREAM@OFFSET]", help="Of this record, orders/0/3@17."),
]


ENTRIES_PEEKED = 5
"""Shown where nobody says how many: payloads take a screen soon."""

Peeked = Annotated[
    int,
    typer.Option(
        "-n", "--number", metavar="N", min=1, max=RECORDS_PEEKED_MAX, help="The newest so many."
    ),
]
PeekedAs = Annotated[
    Decoding,
    typer.Option("--as", metavar="HOW", help="text, json or hex; auto (default) detects it."),
]
ToFile = Annotated[
    str, typer.Argument(metavar="[FILE]", help="A new file; - is standard output, as where absent.")
]


def chosen(
    context: typer.Context,
    place: str | None,
    error: str,
    key: str | None,
    origin: str,
    member: str,
    since: str | None,
    until: str | None,
) -> dict[str, Any]:
    """The fields of a change that say which records are meant.

    Raises:
        typer.BadParameter: they exclude each other, or one is none.
    """
    if place is not None and origin:
        raise typer.BadParameter("--origin and STREAM@OFFSET exclude each other.", ctx=context)
    stream, offset = (origin, None) if place is None else place_of(context, place)
    return {
        "error": error,
        "key": key_bytes(key),
        "stream": stream,
        "offset": offset,
        "client_id": member,
        "start_us": time_us(context, since),
        "end_us": time_us(context, until),
    }


def key_bytes(key: str | None) -> bytes | None:
    """A key as it was typed."""
    return None if key is None else key.encode(errors="surrogateescape")


def time_us(context: typer.Context, text: str | None) -> int | None:
    """A time as it was typed.

    Raises:
        typer.BadParameter: it is the beginning or the end of something.
    """
    if text is None:
        return None
    at = parse_time(text, now_us=settings_of(context).clock_us())
    if isinstance(at, Moment):
        raise typer.BadParameter(f"'{text}' is no time; write -2h, a date, RFC 3339.", ctx=context)
    return at


def place_of(context: typer.Context, place: str | None) -> tuple[str, int | None]:
    """A record as it was typed; nothing where none was.

    Raises:
        typer.BadParameter: it is none.
    """
    if place is None:
        return "", None
    stream, at, offset = place.rpartition("@")
    if not at or not offset.isdecimal():
        raise typer.BadParameter(f"'{place}' is no record; write orders/0/3@17.", ctx=context)
    return str(StreamName.parse(stream)), int(offset)


def has_member(settings: Settings, operation: "Operation") -> bool:
    """Whether the group has members: only they carry out what an operation asks of its queues."""
    found = ask(settings, lambda client: client.groups.describe(operation.subject))
    if not found.group.borrowers:
        note(settings, f"nobody is a member of {operation.subject}: it goes on once somebody is")
    return found.group.borrowers > 0
