"""What ``dssctl groups`` asks about: why a record does not come, what is stuck, what adds up."""

from typing import TYPE_CHECKING, Annotated

import typer

from dss_core.errors import ExitCode
from dss_core.times import parse_span_ms
from dssctl.arguments import GroupName
from dssctl.connection import ask
from dssctl.items import item_of
from dssctl.listing import list_items
from dssctl.nouns.answers import STANDING_KIND, VERIFIED_KIND, standing_item, sums_item
from dssctl.output import Item, note, show_list
from dssctl.progress import scanning
from dssctl.selection import Wanted
from dssctl.settings import Format, Settings
from dssctl.tree import settings_of

if TYPE_CHECKING:
    from dss_client import Client, WhyAnswer


def stuck(
    context: typer.Context,
    group: Annotated[
        str | None,
        typer.Argument(metavar="GROUP", help="NAME or NAME@FILTER; all where none is given."),
    ] = None,
    after: Annotated[
        str | None,
        typer.Option(
            "--for", metavar="SPAN", help="Nothing was acknowledged for this long; default 1m."
        ),
    ] = None,
) -> None:
    """List groups and streams that do not move though they have records, and why."""
    after_s = None if after is None else parse_span_ms(after) / 1_000
    commands: list[str] = []

    async def found(client: "Client", _wanted: Wanted) -> list[Item]:
        each_stuck = await client.groups.stuck(group, after=after_s)
        commands[:] = [each.reason.command for each in each_stuck]
        return [item_of("Stuck", each) for each in each_stuck]

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
    show_list(settings, STANDING_KIND, [standing_item(each) for each in answer.records])
    _note_commands(settings, [each.reason.command for each in answer.records])
    if answer.next_command:
        note(settings, f"{_unlooked(answer)}; go on: {answer.next_command}")


def verify(
    context: typer.Context,
    group: GroupName,
    stream: Annotated[
        list[str] | None,
        typer.Option("--stream", metavar="STREAM", help="Only this one; may be repeated."),
    ] = None,
    scan: Annotated[
        bool, typer.Option("--scan", help="Also count the records that the log still has; paced.")
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
    show_list(settings, VERIFIED_KIND, [sums_item(each) for each in found])
    if any(each.problem for each in found):
        raise typer.Exit(ExitCode.FAILED)


def _unlooked(answer: "WhyAnswer") -> str:
    left = next((each for each in answer.looked if each.end < each.to), None)
    if left is None:
        return "not all of the queues was looked through"
    return f"{left.stream} was looked at from {left.start} to {left.end}, and ends at {left.to}"


def _note_commands(settings: Settings, commands: list[str]) -> None:
    """Tell a person what would help; a program has it in the data."""
    if settings.format is Format.TABLE:
        for command in dict.fromkeys(filter(None, commands)):
            note(settings, f"next: {command}")
