"""Sessions as operators see them.

Invariant: values only. What a session subscribes to is counted from its rows, which are durable
before a client hears of them.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from dssd.leaders.declarations import EXCLUSIVE
from dssd.leaders.groups import Groups
from dssd.loop_yield import LoopTurn
from dssd.machines.delivery.standing import Standing
from dssd.store.paging import scan_all
from dssd.store.port import Key, Store
from dssd.store.rows import SessionRow, SubscriptionRow


@dataclass(frozen=True, slots=True)
class SessionView:
    """A session."""

    client_id: str
    session_id: bytes
    connected: bool
    since_ms: int
    """By the wall clock: connected since then, or detached."""
    expiry_ms: int
    """How long it is kept without a connection."""
    subscriptions: int
    private: int
    """How many of the subscriptions are private."""
    principal: str
    peer: str
    """Where the client is connected from; empty where it is not."""

    @property
    def state(self) -> str:
        """The state of the connection, in a word."""
        return "connected" if self.connected else "detached"


@dataclass(frozen=True, slots=True)
class SessionCounts:
    """How many sessions there are."""

    connected: int
    detached: int
    subscriptions: int

    @property
    def kept(self) -> int:
        """The number of sessions that can be resumed: all of them."""
        return self.connected + self.detached


@dataclass(frozen=True, slots=True)
class HeldRecord:
    """An offset of a stream that a connected session holds."""

    standing: Standing
    credit_records: int
    """How many records may be out with the client."""
    taken: tuple[tuple[str, int], ...]
    """How many records are out, by group, the most first."""


@dataclass(frozen=True, slots=True)
class Connected:
    """A connection of a session."""

    since_ms: int
    peer: str


async def views_of(
    store: Store, groups: Groups, sessions: Iterable[tuple[SessionRow, Connected | None]]
) -> list[SessionView]:
    """The sessions with what they subscribe to, in the order given."""
    wanted = list(sessions)
    one_session: Key = (wanted[0][0].session_id,) if len(wanted) == 1 else ()
    every: Counter[bytes] = Counter()
    private: Counter[bytes] = Counter()
    turn = LoopTurn()
    for found in await scan_all(store, SubscriptionRow, one_session):
        await turn.give_way()
        every[found.row.session_id] += 1
        if groups.has(found.row.group_id) and groups.get(found.row.group_id).kind == EXCLUSIVE:
            private[found.row.session_id] += 1
    return [
        SessionView(
            client_id=row.client_id,
            session_id=row.session_id,
            connected=connected is not None,
            since_ms=connected.since_ms if connected else row.disconnected_at_ms or 0,
            expiry_ms=row.expiry_ms,
            subscriptions=every[row.session_id],
            private=private[row.session_id],
            principal=row.principal,
            peer=connected.peer if connected else "",
        )
        for row, connected in wanted
    ]
