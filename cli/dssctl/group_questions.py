"""What ``dssctl groups`` asks about: why a record does not come, what is stuck, what adds up."""

from typing import TYPE_CHECKING, Annotated

import typer

from dss_core.errors import ExitCode
from dss_core.times import parse_span_ms, text_of_span
from dssctl.arguments import GroupName
from dssctl.connection import ask
from dssctl.items import item_of
from dssctl.listing import list_items
from dssctl.output import Column, Instant, Item, Kind, note, show_list
from dssctl.progress import scanning
from dssctl.selection import Wanted
from dssctl.settings import Format, Settings
from dssctl.tree import settings_of

if TYPE_CHECKING:
    from dss_client import Client, RecordStanding, StreamSums, Stuck, WhyAnswer

REASON_STYLES = {
    **dict.fromkeys(("unreadable", "damage-ahead", "capped", "dead"), "bold red"),
    **dict.fromkeys(("no-members", "paused", "free", "retrying"), "yellow"),
}

STANDING_KIND = Kind(
    "RecordStanding",
    (
        Column("stream", "STREAM"),
        Column("offset", "OFFSET", right=True),
        Column("code", "WHY", styles=REASON_STYLES),
        Column("client_id", "CLIENT"),
        Column("attempt", "ATTEMPT", right=True),
        Column("sentence", "IN WORDS"),
        Column("since", "SINCE", right=True, wide=True),
        Column("until", "UNTIL", cell=lambda item, _now_us: _moment(item["until"]), wide=True),
        Column("ahead", "AHEAD", right=True, wide=True),
        Column("floor", "FLOOR", right=True, wide=True),
        Column("end", "END", right=True, wide=True),
        Column("blocked_by", "BLOCKED-BY", right=True, wide=True),
        Column("subject", "SUBJECT", wide=True),
        Column("key", "KEY", wide=True),
        Column("appended_at", "APPENDED", right=True, wide=True),
        Column("command", "NEXT", wide=True),
    ),
    lambda item: f"{item['stream']}:{item['offset']}",
)


STUCK_KIND = Kind(
    "Stuck",
    (
        Column("group", "GROUP"),
        Column("stream", "STREAM"),
        Column("code", "WHY", styles=REASON_STYLES),
        Column("lag", "LAG", right=True),
        Column("still_ms", "STILL-FOR", right=True, cell=lambda item, _now_us: _still(item)),
        Column("sentence", "IN WORDS"),
        Column("client_id", "CLIENT", wide=True),
        Column("attempt", "ATTEMPT", right=True, wide=True),
        Column("since", "SINCE", right=True, wide=True),
        Column("until", "UNTIL", cell=lambda item, _now_us: _moment(item["until"]), wide=True),
        Column("blocked_by", "BLOCKED-BY", right=True, wide=True),
        Column("command", "NEXT", wide=True),
    ),
    lambda item: str(item["stream"] or item["group"]),
)


def stuck(
    context: typer.Context,
    group: Annotated[
        str | None,
        typer.Argument(metavar="GROUP", help="NAME or NAME@FILTER; all where none is given."),
    ] = None,
    after: Annotated[
        str | None,
        typer.Option(
            "--for", metavar="SPAN", help="Nothing was acknowledged for so long; 1m where absent."
        ),
    ] = None,
) -> None:
    """List groups and streams that do not move though they have records, and why."""
    after_s = None if after is None else parse_span_ms(after) / 1_000
    commands: list[str] = []

    async def found(client: "Client", _wanted: Wanted) -> list[Item]:
        each_stuck = await client.groups.stuck(group, after=after_s)
        commands[:] = [each.reason.command for each in each_stuck]
        return [stuck_item(each) for each in each_stuck]

    shown = list_items(context, found)
    _note_commands(settings_of(context), commands)
    if not shown and settings_of(context).format in {Format.TABLE, Format.WIDE}:
        note(settings_of(context), "nothing that is listed here is stuck")


def why(
    context: typer.Context,
    group: GroupName,
    in_stream: Annotated[
        str | None, typer.Argument(metavar="[STREAM]", help="The same as --stream.")
    ] = None,
    at_offset: Annotated[
        int | None, typer.Argument(metavar="[OFFSET]", min=0, help="The same as --offset.")
    ] = None,
    stream: Annotated[
        str, typer.Option(metavar="STREAM", help="orders/0/3; with --key: look only there.")
    ] = "",
    offset: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, help="The record's offset; with --key: look from there on."
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Take the records with this key, instead of an offset."),
    ] = None,
    topic: Annotated[str, typer.Option(metavar="TOPIC", help="With --key: look only there.")] = "",
) -> None:
    """Tell where a record stands for a group, and why it does not come."""
    settings = settings_of(context)
    if (in_stream and stream) or (at_offset is not None and offset is not None):
        raise typer.BadParameter("the record is named twice.", ctx=context)
    stream, offset = in_stream or stream, at_offset if offset is None else offset
    if key is None and (not stream or offset is None):
        raise typer.BadParameter("name a record: STREAM and OFFSET, or --key.", ctx=context)
    asked = None if key is None else key.encode(errors="surrogateescape")
    answer = ask(
        settings,
        lambda client: client.groups.why(
            group, stream=stream, offset=offset, key=asked, topic=topic
        ),
    )
    show_list(settings, STANDING_KIND, [_standing_item(each) for each in answer.records])
    _note_commands(settings, [each.reason.command for each in answer.records])
    if answer.next_command:
        note(settings, f"{_unlooked(answer)}; go on: {answer.next_command}")


VERIFIED_KIND = Kind(
    "StreamSums",
    (
        Column("stream", "STREAM"),
        Column("adds_up", "ADDS-UP", styles={"yes": "green", "no": "bold red"}),
        Column("appended", "APPENDED", right=True),
        Column("acked", "ACKED", right=True),
        Column("filtered", "FILTERED", right=True),
        Column("lost", "LOST", right=True),
        Column("damaged", "DAMAGED", right=True),
        Column("moved", "MOVED", right=True),
        Column("retried", "RETRIED", right=True),
        Column("out", "OUT", right=True),
        Column("waiting", "WAITING", right=True),
        Column("gone", "GONE", right=True),
        Column("problem", "PROBLEM"),
        Column("began", "BEGAN", right=True, wide=True),
        Column("end", "END", right=True, wide=True),
        Column("uncounted", "UNCOUNTED", right=True, wide=True),
        Column("found_matching", "FOUND-MATCHING", right=True, wide=True),
        Column("found_filtered", "FOUND-FILTERED", right=True, wide=True),
        Column("found_missing", "FOUND-MISSING", right=True, wide=True),
    ),
    lambda item: str(item["stream"]),
)


def verify(
    context: typer.Context,
    group: GroupName,
    stream: Annotated[
        list[str] | None,
        typer.Option("--stream", metavar="STREAM", help="Only this one; may be repeated."),
    ] = None,
    scan: Annotated[
        bool, typer.Option("--scan", help="Count anew what the log still has; paced.")
    ] = False,
) -> None:
    """Check that what a group is done with adds up with what was appended; exit code 1 if not."""
    settings = settings_of(context)
    if scan:
        # A scan takes as long as the log is long.
        settings.timeout_s = settings.wait_s
    with scanning(settings, f"scan of {group}") as progress:
        found = ask(
            settings,
            lambda client: client.groups.verify(
                group, streams=stream or (), scan=scan, progress=progress
            ),
        )
    show_list(settings, VERIFIED_KIND, [_sums_item(each) for each in found])
    if any(each.problem for each in found):
        raise typer.Exit(ExitCode.FAILED)


def _unlooked(answer: "WhyAnswer") -> str:
    left = next((each for each in answer.looked if each.end < each.to), None)
    if left is None:
        return "not all of the queues was looked through"
    return f"{left.stream} was looked at from {left.start} to {left.end}, and ends at {left.to}"


def _standing_item(standing: "RecordStanding") -> Item:
    key = None if standing.key is None else standing.key.decode(errors="backslashreplace")
    return item_of("RecordStanding", standing, key=key)


def stuck_item(stuck: "Stuck") -> Item:
    """A group or stream that does not move, as the renderer takes it."""
    return item_of("Stuck", stuck)


def _sums_item(sums: "StreamSums") -> Item:
    found = sums.scanned
    scanned = {
        "found_matching": found.matching if found else None,
        "found_filtered": found.filtered if found else None,
        "found_missing": found.missing if found else None,
    }
    return item_of("StreamSums", sums, adds_up=not sums.problem, **scanned)


def _still(item: Item) -> str:
    still_ms = item["still_ms"]
    return text_of_span(still_ms) if isinstance(still_ms, int) else "-"


def _note_commands(settings: Settings, commands: list[str]) -> None:
    """Tell a person what would help; a program has it in the data."""
    if settings.format is Format.TABLE:
        for command in dict.fromkeys(filter(None, commands)):
            note(settings, f"next: {command}")


def _moment(value: object) -> str:
    return value.rfc3339() if isinstance(value, Instant) else "-"
