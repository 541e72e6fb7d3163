"""The page of a session."""

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dss_core.counted import counted
from dss_core.errors import SessionNotFound
from dssctl.items import item_of
from dssctl.limits import PAGE_OPERATIONS
from dssctl.nouns.sessions import HELD_KIND, MEMBERSHIP_KIND
from dssctl.output import Instant, Item, Kind, Section
from dssctl.pages.verdict import (
    HEALTH,
    OPERATION_LINES,
    VERDICT,
    Verdict,
    named,
    operation_lines,
    show_page,
    worst_of,
)
from dssctl.settings import Settings

if TYPE_CHECKING:
    from dss_client import Client, Grant, Operation, SessionSummary, WatchedMember
    from dss_client import Verdict as DaemonVerdict


@dataclass(frozen=True, slots=True)
class SessionLook:
    """All that the page is made of."""

    session: "SessionSummary"
    members: "tuple[WatchedMember, ...]"
    grants: "tuple[Grant, ...]"
    operations: "tuple[Operation, ...]"
    found: "tuple[DaemonVerdict, ...]" = ()
    """What the daemon finds of it."""


async def session_look(client: "Client", client_id: str) -> SessionLook:
    """Ask for it, at once.

    Raises:
        SessionNotFound: the client has none.
    """
    sessions, members, grants, operations, found = await asyncio.gather(
        client.sessions.list(),
        _members(client, client_id),
        client.grants.list(),
        client.operations.list(subject=client_id, latest=PAGE_OPERATIONS),
        client.daemon.findings(client_id=client_id),
    )
    session = next((each for each in sessions if each.client_id == client_id), None)
    if session is None:
        raise SessionNotFound(client_id=client_id)
    held = tuple(grant for grant in grants if grant.client_id == client_id)
    return SessionLook(session, members, held, operations, found)


async def _members(client: "Client", client_id: str) -> "tuple[WatchedMember, ...]":
    """Of which groups the client is a member now, private subscriptions too."""
    from dss_client import WatchedMember

    found: list[WatchedMember] = []
    async with aclosing(client.watch("members", all=True)) as watched:
        async for update in watched:
            found += (
                value
                for _, value in update.changed
                if isinstance(value, WatchedMember) and value.client_id == client_id
            )
            if update.complete:
                break
    return tuple(found)


def session_verdict(look: SessionLook, now_us: int) -> Verdict:
    """How the session is."""
    session = look.session
    if session.state != "connected":
        since = Instant.of_ms(session.since_ms).age(now_us)
        ends = f"it ends {session.expiry_s} s after it was left"
        close = (f"dssctl sessions close {session.client_id}",)
        return Verdict("attention", f"Its client is away for {since}; {ends}.", close)
    wrong = worst_of(look.found)
    if wrong is not None:
        return wrong
    if not look.members:
        return Verdict("healthy", "It is connected and subscribes to nothing.")
    streams = counted(len(look.grants), "stream")
    lag = counted(sum(grant.lag for grant in look.grants), "record")
    told = f"It reads {streams} for {counted(len(look.members), 'subscription')}; {lag} to go."
    groups = dict.fromkeys(member.group for member in look.members)
    return Verdict(
        "healthy", told, tuple(f"dssctl groups describe {named(name)}" for name in groups)[:3]
    )


def show_session(settings: Settings, kind: Kind, facts: Item, look: SessionLook) -> None:
    """Print the page; `kind` and `facts` are those of the sessions' own command."""
    item = {
        **session_verdict(look, settings.clock_us()).fields,
        **facts,
        "memberships": [item_of("Membership", each) for each in look.members],
        "grants": [
            item_of("HeldStream", each, group=f"{each.group}@{each.filter}")
            for each in sorted(look.grants, key=lambda grant: -grant.lag)
        ],
        "operations": operation_lines(look.operations),
    }
    sections = [
        Section("memberships", MEMBERSHIP_KIND),
        Section("grants", HELD_KIND),
        Section("operations", OPERATION_LINES),
        Section("next"),
    ]
    page = Kind(kind.name, (HEALTH, VERDICT, *kind.columns), kind.identity)
    show_page(settings, kind, page, item, sections)
