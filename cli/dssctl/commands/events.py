"""``dssctl events``: what happened to records and groups."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from dssctl.advice import outages_noted
from dssctl.connection import ask, connected, in_time, require_daemon
from dssctl.items import item_of
from dssctl.limits import EVENTS_BEFORE_FOLLOWING
from dssctl.nouns.events import EVENT_KIND
from dssctl.output import growing, show_list
from dssctl.output.writer import Growing
from dssctl.settings import Settings
from dssctl.tree import settings_of, showing, verb_alone

if TYPE_CHECKING:
    from dss_client import Client, EventPage

app = verb_alone("events")


@app.command(cls=showing(EVENT_KIND))
def events(
    context: typer.Context,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Also print new ones, until Ctrl-C.")
    ] = False,
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Told since then: -15m, a date, RFC 3339, @unix."),
    ] = None,
    severity: Annotated[
        str, typer.Option(metavar="SEVERITY", help="info, warning or error: this and worse.")
    ] = "info",
    subject: Annotated[
        str,
        typer.Option(
            metavar="PREFIX", help="Only what begins like this: orders/0/3, billing@, ..."
        ),
    ] = "",
    number: Annotated[
        int | None,
        typer.Option(
            "-n",
            "--limit",
            "--number",
            min=0,
            help="Only the last so many of those that are kept. All where absent; "
            f"{EVENTS_BEFORE_FOLLOWING} with -f and without --since.",
        ),
    ] = None,
) -> None:
    """Print what happened to records and groups, the oldest first."""
    wanted = _Wanted(settings_of(context), since, severity, subject, number)
    if follow:
        wanted.follow()
    else:
        wanted.show()


class _Wanted:
    """One run: which events, and how they are printed."""

    def __init__(
        self,
        settings: Settings,
        since: str | None,
        severity: str,
        subject: str,
        number: int | None,
    ) -> None:
        self._settings = settings
        self._since = since
        self._severity = severity
        self._subject = subject
        self._number = number

    def show(self) -> None:
        """Print the kept events."""
        page = ask(self._settings, lambda client: self._kept(client, self._number))
        show_list(self._settings, EVENT_KIND, [item_of("Event", event) for event in page.events])

    def follow(self) -> None:
        """Print the kept events and new ones.

        Raises:
            KeyboardInterrupt: it was interrupted.
            BrokenPipeError: nobody reads stdout any more.
        """
        with growing(self._settings, EVENT_KIND) as listing, outages_noted(self._settings):
            asyncio.run(self._follow(listing))

    async def _follow(self, listing: Growing) -> None:
        number = self._number
        if number is None and self._since is None:
            number = EVENTS_BEFORE_FOLLOWING
        async with connected(self._settings) as client:
            await require_daemon(client, self._settings)
            page = await in_time(self._settings, self._kept(client, number))
            after = page.events[0].number - 1 if page.events else page.last_number
            coming = client.events.watch(
                after=after, severity=self._severity, subject=self._subject
            )
            async for event in coming:
                listing.add(item_of("Event", event))

    async def _kept(self, client: "Client", number: int | None) -> "EventPage":
        return await client.events.list(
            since=self._since, severity=self._severity, subject=self._subject, latest=number
        )
