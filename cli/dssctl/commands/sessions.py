"""``dssctl sessions``: what the daemon keeps of clients."""

from typing import TYPE_CHECKING, Annotated

import typer

from dssctl.changing import Changing, carry_out
from dssctl.connection import ask
from dssctl.items import item_of
from dssctl.listing import list_items, listing
from dssctl.nouns.sessions import SESSION_KIND
from dssctl.output import Item
from dssctl.page import page
from dssctl.selection import ListRules, Named, Wanted
from dssctl.tree import noun, settings_of

if TYPE_CHECKING:
    from dss_client import Client

app = noun("sessions")


RULES = ListRules(remembered="sessions", named=Named("[CLIENT]", ("client_id",)))


@app.command("ls", cls=listing(SESSION_KIND, RULES))
def list_sessions(context: typer.Context) -> None:
    """List the sessions of all clients, connected or not."""

    async def sessions(client: "Client", _wanted: Wanted) -> list[Item]:
        return [item_of("Session", session) for session in await client.sessions.list()]

    list_items(context, sessions)


@app.command(cls=page(SESSION_KIND))
def describe(
    context: typer.Context,
    client: Annotated[str, typer.Argument(metavar="CLIENT", help="The id of its client.")],
) -> None:
    """Show whether a session is healthy, its groups, and the streams that it holds."""
    from dssctl.pages.session_page import session_look, show_session

    settings = settings_of(context)
    look = ask(settings, lambda connected: session_look(connected, client))
    show_session(settings, SESSION_KIND, item_of("Session", look.session), look)


@app.command(cls=Changing)
def close(
    context: typer.Context,
    client: Annotated[str, typer.Argument(metavar="CLIENT", help="The id of its client.")],
) -> None:
    """End the session of a client, connected or not; what it held goes to others."""
    from dss_client.changes import CloseSession

    carry_out(context, CloseSession(client))


@app.command(cls=Changing)
def adopt(
    context: typer.Context,
    to: Annotated[
        str, typer.Option(metavar="PRINCIPAL", help="The new principal: token:NAME, cert:NAME.")
    ],
    clients: Annotated[
        list[str] | None,
        typer.Argument(metavar="[CLIENT]...", help="Ids of clients; 'billing-*' for many."),
    ] = None,
    of: Annotated[
        str | None,
        typer.Option(metavar="PRINCIPAL", help="Only those of this principal, such as loopback."),
    ] = None,
) -> None:
    """Give sessions whose clients are away to another principal, with all that they own."""
    from dss_client.changes import AdoptSessions

    carry_out(context, AdoptSessions(to, tuple(clients or ()), of or ""))
