"""``dssctl audit``: which calls of operators changed something, or were refused."""

from typing import TYPE_CHECKING, Annotated

import typer

from dssctl.listing import list_items, listing
from dssctl.nouns.events import CALL_KIND
from dssctl.output import Instant, Item
from dssctl.selection import ListRules, Wanted
from dssctl.tree import noun

if TYPE_CHECKING:
    from dss_client import Client, Event

app = noun("audit")

CODES = ("call.done", "call.refused", "operation.applied")
"""The codes of events about calls."""


@app.command("ls", cls=listing(CALL_KIND, ListRules(newest_last=True)))
def list_calls(
    context: typer.Context,
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Made since then: -15m, a date, RFC 3339, @unix."),
    ] = None,
    principal: Annotated[
        str, typer.Option(metavar="PRINCIPAL", help="Made by this one: local:ada, loopback.")
    ] = "",
) -> None:
    """List the calls that changed something, and those that were refused, the oldest first."""

    async def calls(client: "Client", wanted: Wanted) -> list[Item]:
        page = await client.events.list(
            since=since, codes=CODES, principal=principal, latest=wanted.at_most
        )
        return [_item(event) for event in page.events]

    list_items(context, calls)


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
