"""``dssctl sessions``: what the daemon keeps of clients."""

from typing import TYPE_CHECKING, Annotated

import typer

from dss_core.times import text_of_span
from dssctl.changing import Changing, carry_out
from dssctl.connection import ask
from dssctl.items import item_of
from dssctl.listing import list_items, listing
from dssctl.output import Column, Item, Kind
from dssctl.page import page
from dssctl.selection import ListRules, Named, Wanted
from dssctl.tree import noun, settings_of

if TYPE_CHECKING:
    from dss_client import Client, SessionSummary

app = noun("sessions")


def _expiry(item: Item, _now_us: int) -> str:
    expiry_s = item["expiry_s"]
    assert isinstance(expiry_s, int)
    return text_of_span(expiry_s * 1_000)


SESSION_KIND = Kind(
    "Session",
    (
        Column("client_id", "CLIENT"),
        Column("state", "STATE", styles={"connected": "green"}),
        Column("since", "SINCE", right=True),
        Column("subscriptions", "SUBSCRIPTIONS", right=True),
        Column("peer", "PEER"),
        Column("private_subscriptions", "PRIVATE", right=True, wide=True),
        Column("expiry_s", "EXPIRY", right=True, cell=_expiry, wide=True),
        Column("principal", "PRINCIPAL", wide=True),
    ),
    lambda item: str(item["client_id"]),
)


RULES = ListRules(remembered="sessions", named=Named("[CLIENT]", ("client_id",)))


@app.command("ls", cls=listing(SESSION_KIND, RULES))
def list_sessions(context: typer.Context) -> None:
    """List the sessions of all clients, connected or not."""

    async def sessions(client: "Client", _wanted: Wanted) -> list[Item]:
        return [session_item(session) for session in await client.sessions.list()]

    list_items(context, sessions)


@app.command(cls=page(SESSION_KIND))
def describe(
    context: typer.Context,
    client: Annotated[str, typer.Argument(metavar="CLIENT", help="The id of its client.")],
) -> None:
    """Show whether a session is healthy, of which groups it is a member, what it holds."""
    from dssctl.pages.session_page import session_look, show_session

    settings = settings_of(context)
    look = ask(settings, lambda connected: session_look(connected, client))
    show_session(settings, SESSION_KIND, session_item(look.session), look)


@app.command(cls=Changing)
def close(
    context: typer.Context,
    client: Annotated[str, typer.Argument(metavar="CLIENT", help="The id of its client.")],
) -> None:
    """End the session of a client, connected or not; what it held goes to others."""
    from dss_client.changes import CloseSession

    carry_out(context, CloseSession(client))


def session_item(session: "SessionSummary") -> Item:
    """A session as the renderer takes it."""
    return item_of("Session", session)
