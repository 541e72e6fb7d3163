"""``dssctl audit``: which calls of operators changed something, or were refused."""

from typing import TYPE_CHECKING, Annotated

import typer

from dssctl.connection import ask
from dssctl.output import Column, Instant, Item, Kind, show_list
from dssctl.tree import Command, noun, settings_of

if TYPE_CHECKING:
    from dss_client import Event

app = noun("audit")

CODES = ("call.done", "call.refused", "operation.applied")
"""Of the events that tell of calls."""

CALL_KIND = Kind(
    "Call",
    (
        Column("number", "NUMBER", right=True),
        Column("at", "AGE", right=True),
        Column("principal", "PRINCIPAL"),
        Column("outcome", "OUTCOME", styles={"done": "green", "unknown": "yellow"}),
        Column("subject", "SUBJECT"),
        Column("method", "METHOD", wide=True),
        Column("program", "PROGRAM", wide=True),
        Column("pid", "PID", right=True, wide=True),
        Column("user", "USER", wide=True),
        Column("origin", "FROM", wide=True),
        Column("sentence", "WHAT WAS ASKED"),
    ),
    lambda item: str(item["number"]),
)


@app.command("ls", cls=Command)
def list_calls(
    context: typer.Context,
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Made since then: -15m, a date, RFC 3339, @unix."),
    ] = None,
    principal: Annotated[
        str, typer.Option(metavar="PRINCIPAL", help="Made by this one: local:ada, loopback.")
    ] = "",
    number: Annotated[
        int | None,
        typer.Option("-n", "--number", min=0, help="Only the last so many; all where absent."),
    ] = None,
) -> None:
    """List the calls that changed something, and those that were refused, the oldest first."""
    settings = settings_of(context)
    page = ask(
        settings,
        lambda client: client.events.list(
            since=since, codes=CODES, principal=principal, latest=number
        ),
    )
    show_list(settings, CALL_KIND, [_item(event) for event in page.events])


def _item(event: "Event") -> Item:
    fields = event.fields
    method = fields.get("method") or fields.get("kind")
    return {
        "number": event.number,
        "at": Instant.of_ms(event.at_ms),
        "principal": fields.get("principal"),
        "outcome": fields.get("outcome", "done"),
        "subject": event.subject,
        "method": method,
        "program": fields.get("program"),
        "pid": fields.get("pid"),
        "user": fields.get("user"),
        "origin": fields.get("origin"),
        "reason": fields.get("reason"),
        "sentence": event.sentence,
    }
