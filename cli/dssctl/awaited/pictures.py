"""Pictures of groups, sessions, operations and the daemon, each time that they change.

Invariant: nothing is polled if a watch reports its changes; only a daemon that does not exist yet
cannot be watched. A feed ends when no other picture can come.
"""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING

from dss_core.errors import DssError, GroupNotFound, TimedOut, Unreachable
from dssctl.awaited.conditions import EXISTS, GONE, MOVING, Condition, Picture

if TYPE_CHECKING:
    from dss_client import Client, Group, WatchedValue, WatchKey, WatchUpdate

DAEMON_LOOK_S = 0.2
"""The pause between two looks for a daemon that does not exist yet: a start takes seconds."""

DAEMON_LOOK_TIMEOUT_S = 2.0
"""The timeout of one look: a daemon that starts accepts calls before it answers them."""


Pictures = AsyncGenerator[Picture | None, None]

_CHANGING_HANDS = ("granting", "revoking", "revoked")


async def group_pictures(
    client: "Client", name: str, conditions: tuple[Condition, ...]
) -> Pictures:
    """Pictures of a group.

    Raises:
        GroupNotFound: it does not exist or was removed, and no condition is about that.
        GroupAmbiguous: several have the name.
    """
    may_be_gone = any(each.field in (GONE, EXISTS) for each in conditions)
    try:
        described = (await client.groups.describe(name)).group
        name = f"{described.name}@{described.filter}"
    except GroupNotFound:
        if not may_be_gone:
            raise
    seen: dict[WatchKey, WatchedValue] = {}
    # The watch reports a group of thousands of streams in one line, unless streams are asked for.
    streams = ("grants",) if any(each.field == MOVING for each in conditions) else ()
    async with aclosing(client.watch("groups", *streams, groups=[name], all=True)) as watched:
        async for update in watched:
            _apply(seen, update)
            if not update.complete:
                continue
            picture = await _group_picture(client, name, seen, conditions)
            if picture is None and not may_be_gone:
                raise GroupNotFound(group=name)
            yield picture


async def _group_picture(
    client: "Client",
    name: str,
    seen: "dict[WatchKey, WatchedValue]",
    conditions: tuple[Condition, ...],
) -> Picture | None:
    from dss_client import Group

    group = next((value for value in seen.values() if isinstance(value, Group)), None)
    if group is None:
        return None
    picture = _of_group(group, seen)
    if group.lag_exact or all(each.holds(picture) for each in conditions):
        return picture
    # A watch does not count how many records of a topic a filter matches; a question does.
    try:
        return _of_group((await client.groups.describe(name)).group, seen)
    except GroupNotFound:
        return None


def _of_group(group: "Group", seen: "dict[WatchKey, WatchedValue]") -> Picture:
    from dss_client import WatchedGrant

    states = [value.state for value in seen.values() if isinstance(value, WatchedGrant)]
    moving = sum(state in _CHANGING_HANDS for state in states)
    if group.borrowers:
        moving += states.count("free")
    oldest_us = group.oldest_unacked_us
    age_ms = None if oldest_us is None else max(time.time_ns() // 1_000 - oldest_us, 0) // 1_000
    return {
        "lag": group.lag,
        "retrying": group.retrying,
        "dead": group.dead,
        "members": group.borrowers,
        "standby": group.standby,
        "streams": group.streams,
        MOVING: moving if states else None,
        "oldest": age_ms,
        "state": group.state,
        "health": group.health,
    }


async def session_pictures(client: "Client", client_id: str) -> Pictures:
    """Pictures of a session."""
    from dss_client import SessionSummary

    seen: dict[WatchKey, WatchedValue] = {}
    async with aclosing(client.watch("sessions")) as watched:
        async for update in watched:
            _apply(seen, update)
            if not update.complete:
                continue
            named = (each for each in seen.values() if isinstance(each, SessionSummary))
            session = next((each for each in named if each.client_id == client_id), None)
            if session is None:
                yield None
            else:
                yield {"state": session.state, "subscriptions": session.subscriptions}


async def operation_pictures(client: "Client", number: int) -> Pictures:
    """Pictures of an operation, until it has ended.

    Raises:
        OperationNotFound: there is none.
    """
    async with aclosing(client.operations.watch(number)) as watched:
        async for operation in watched:
            yield {
                "state": operation.state,
                "ended": int(operation.ended),
                "streams-waiting": operation.streams_waiting,
            }


async def daemon_pictures(client: "Client") -> Pictures:
    """Pictures of the daemon; None while nobody answers."""
    while True:
        try:
            async with asyncio.timeout(DAEMON_LOOK_TIMEOUT_S):
                status = await client.daemon.status()
        except (Unreachable, TimedOut, TimeoutError):
            yield None
        except DssError as told:
            # It answers, but is not ready.
            yield {"state": told.code, "sessions": 0, "groups": 0}
        else:
            yield {"state": status.state, "sessions": status.sessions, "groups": status.groups}
        await asyncio.sleep(DAEMON_LOOK_S)


def _apply(seen: "dict[WatchKey, WatchedValue]", update: "WatchUpdate") -> None:
    if update.anew:
        seen.clear()
    seen.update(update.changed)
    for key in update.removed:
        seen.pop(key, None)
