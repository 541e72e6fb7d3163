"""Rules for sessions, judged at every commit and at every message to a client.

The rules know what is stored because they see each commit take effect, and on whose behalf; they
know what clients saw because clients tell. They never ask the daemon. Names are those of
docs/proof/sessions-simulator.md.

    S9   session epochs rise, and an id is never used twice; a connection of before writes nothing
    S13  `session_present` is true exactly when the session was there
    S14  no session is discarded before its time: its expiry, at least the grace, since the client
         left, on a clock that only runs; over a restart as the wall clock tells, no less than the
         grace; the grace alone where there is no room and it has no private subscription
    S15  a resumed session has exactly its subscriptions
    S16  only its principal opens a session
    S17  when a client left is written down, with a date that the wall clock showed then
    S18  nobody removes what a session does not own, nor what it owns while it lives
    I18  a group that an operator destroyed stays so, until an operator declares it again
    F11  the newest connection wins, and the older is told so; so is whoever comes back to a session
         that another one discarded, and nobody else
    F12  refusals are deserved
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from dss_api.v1 import sessions_pb2
from dss_core.errors import (
    NotSubscribed,
    PermissionDenied,
    SessionNotFound,
    SessionTakenOver,
    TooManySessions,
)
from dss_core.limits import SESSION_GRACE_S
from dss_sim.groups.checker import Violation
from dss_sim.sessions.clocks import Wall
from dss_sim.sessions.connection import Link
from dss_sim.sessions.timeline import Timeline
from dssd.leaders.declarations import EXCLUSIVE
from dssd.rpc.sessions import SESSION_FAREWELL_S
from dssd.store.port import Delete, Put, Write
from dssd.store.rows import GroupNameRow, GroupRow, Row, SessionRow, SubscriptionRow

GRACE_MS = SESSION_GRACE_S * 1_000
ROUNDING_MS = 3
"""Clocks are read in whole milliseconds, each on its own."""
LEARNS_US = 5_000
"""How long the daemon may not know that a commit took effect."""
FAREWELL_US = int(SESSION_FAREWELL_S * 1e6) + 100_000


class Lives(Protocol):
    """What the rules know of the daemon's lives."""

    began_us: int
    """When the present life was started."""
    wall_began_ms: int
    """The wall clock at that time."""
    stopping_us: int | None
    """Since when it has been told to stop."""

    def coming(self) -> int:
        """How many calls may still create a session."""


@dataclass(slots=True)
class _Session:
    """A session's row as it is stored, and the owner of the newest connection."""

    row: SessionRow
    since_us: int
    """When the row with this session id was made."""
    attached_us: int
    connection: Link | None
    """None if an earlier life opened it."""
    subscriptions: dict[int, SubscriptionRow] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Expected:
    """What a connection must be told when it is opened."""

    present: bool
    row: SessionRow
    groups: dict[int, int]
    """By subscription."""


class Rules:
    """Takes events; raises `Violation`."""

    def __init__(self, timeline: Timeline, wall: Wall, lives: Lives, sessions_max: int) -> None:
        self._timeline = timeline
        self._wall = wall
        self._lives = lives
        self._max = sessions_max
        self._sessions: dict[str, _Session] = {}
        self._used: set[bytes] = set()
        self._expected: dict[Link, _Expected] = {}
        self._groups: dict[int, GroupRow] = {}
        self._tombstones: set[tuple[str, str]] = set()
        self._full_us = -1
        """When the number of sessions was last at its bound."""
        self._discarded: dict[bytes, int] = {}
        """Ids of sessions that ended, and since when."""
        self._gone_us: dict[str, int] = {}
        """When the last session of a client id ended without a successor."""
        self.removals: set[int] = set()
        """Groups whose removal an operator asked for."""
        self.unsubscribes: set[tuple[bytes, int]] = set()
        """Subscriptions that a client asked to leave."""
        self.group_ids: dict[tuple[bytes, int], int] = {}
        """The last group of each subscription of a session."""

    # Commits

    def committed(self, writes: Sequence[Write], asker: Link | None) -> None:
        """A commit took effect."""
        groups = [
            write.row
            for write in writes
            if isinstance(write, Put) and isinstance(write.row, GroupRow)
        ]
        born = [row for row in groups if row.group_id not in self._groups]
        for write in writes:
            if isinstance(write, Put):
                self._put(write.row, asker)
        left = [self._gone(write, asker) for write in writes if isinstance(write, Delete)]
        for write in writes:
            if isinstance(write, Put) and isinstance(write.row, GroupNameRow):
                self._name_put(write.row)
        for row in born:
            self._check_used(row)
        for group_id in left:
            self._check_gone(group_id)

    def new_life(self) -> None:
        """A daemon begins: it knows no earlier connections."""
        for held in self._sessions.values():
            held.connection = None

    def _put(self, row: Row, asker: Link | None) -> None:
        match row:
            case SessionRow():
                self._session_put(row, asker)
            case SubscriptionRow():
                self._subscription_put(row, asker)
            case GroupRow():
                self._group_put(row, asker)

    def _gone(self, write: Delete, asker: Link | None) -> int | None:
        """A row is deleted; returns the group of the subscription, if it was a client's."""
        if write.kind is SessionRow:
            self._session_gone(str(write.key[0]))
        elif write.kind is SubscriptionRow:
            return self._subscription_gone(write, asker)
        elif write.kind is GroupRow:
            self._group_gone(write)
        return None

    def _name_put(self, row: GroupNameRow) -> None:
        if row.destroyed_at_ms is not None:
            self._tombstones.add((row.name, row.filter))

    def _session_put(self, row: SessionRow, asker: Link | None) -> None:
        held = self._sessions.get(row.client_id)
        if row.disconnected_at_ms is not None:
            self._left(row, held)
            return
        if held is not None and row.principal != held.row.principal:
            raise Violation("S16", f"{row.principal} takes the session of {held.row}")
        if asker is None:
            raise Violation("S9", f"nobody asked for {row}")
        if held is not None and row.session_epoch <= held.row.session_epoch:
            raise Violation("S9", f"the epoch was {held.row.session_epoch}: {row}")
        opening = asker.opening
        there = b"" if held is None else held.row.session_id
        if opening.session_id not in (b"", there):
            raise Violation("S13", f"{asker.name} wants a session that is not there: {row}")
        resumes = bool(opening.session_id) or not opening.clean_start
        present = held is not None and resumes
        if held is not None and present and row.session_id != held.row.session_id:
            raise Violation("S13", f"{asker.name} wants {held.row}, which was there: {row}")
        if not present:
            self._begin(row, held)
        held = self._sessions[row.client_id]
        held.row, held.connection, held.attached_us = row, asker, self._timeline.now_us
        groups = {number: each.group_id for number, each in held.subscriptions.items()}
        self._expected[asker] = _Expected(present, row, groups)
        if len(self._sessions) > self._max:
            raise Violation("F12", f"{len(self._sessions)} sessions, of {self._max} at most")
        if len(self._sessions) == self._max:
            self._full_us = self._timeline.now_us

    def _begin(self, row: SessionRow, held: _Session | None) -> None:
        if row.session_id in self._used:
            raise Violation("S9", f"a session id twice: {row}")
        self._used.add(row.session_id)
        if held is not None:
            self._discarded[held.row.session_id] = self._timeline.now_us
        self._sessions[row.client_id] = _Session(row, self._timeline.now_us, 0, None)

    def _left(self, row: SessionRow, held: _Session | None) -> None:
        """A session is stored as one whose client is gone."""
        now_us = self._timeline.now_us
        if held is None or held.row.session_id != row.session_id:
            raise Violation("S9", f"a session that is not there is written: {row}")
        if held.row.session_epoch != row.session_epoch:
            raise Violation("S9", f"the epoch was {held.row.session_epoch}: {row}")
        since_us = self._left_us(held)
        if since_us is None:
            raise Violation("S14", f"its client is connected: {row}")
        assert row.disconnected_at_ms is not None
        if held.row.disconnected_at_ms == row.disconnected_at_ms:
            return
        if not self._wall.showed(row.disconnected_at_ms, since_us, now_us):
            raise Violation("S17", f"the wall clock did not show it since {since_us}: {row}")
        held.row = row

    def _left_us(self, held: _Session) -> int | None:
        """Since when the daemon may treat a session's client as gone; None: it may not."""
        connection = held.connection
        if connection is None:
            return self._lives.began_us
        times = [connection.left_us, self._lives.stopping_us]
        if connection.over_us is not None:
            times.append(connection.over_us - FAREWELL_US)
        if not connection.session_id:
            times.append(held.attached_us)  # it was never told that it is open
        known = [at_us for at_us in times if at_us is not None]
        return min(known) if known else None

    def _session_gone(self, client_id: str) -> None:
        held = self._sessions.pop(client_id, None)
        if held is None:
            return
        now_us = self._timeline.now_us
        is_full = len(self._sessions) + 1 + self._lives.coming() >= self._max
        if len(self._sessions) + 1 == self._max:
            self._full_us = now_us + LEARNS_US
        self._discarded[held.row.session_id] = self._gone_us[client_id] = now_us
        since_us = self._left_us(held)
        if since_us is None:
            raise Violation("S14", f"its client is connected: {held.row}")
        stay_ms = max(held.row.expiry_ms, GRACE_MS)
        if held.connection is None and held.row.disconnected_at_ms is not None:
            gone_ms = max(0, self._lives.wall_began_ms - held.row.disconnected_at_ms)
            stay_ms = max(GRACE_MS, stay_ms - gone_ms)
        if is_full and not self._owns_groups(held):
            stay_ms = GRACE_MS
        if now_us - since_us < (stay_ms - ROUNDING_MS) * 1_000:
            raise Violation(
                "S14", f"{stay_ms} ms, since {since_us} µs, are not over at {now_us} µs: {held.row}"
            )

    def _owns_groups(self, held: _Session) -> bool:
        session_id = held.row.session_id
        return any(group.session_id == session_id for group in self._groups.values())

    def _subscription_put(self, row: SubscriptionRow, asker: Link | None) -> None:
        held = self._newest(row.session_id, asker, row)
        held.subscriptions[row.subscription] = row
        self.group_ids[row.session_id, row.subscription] = row.group_id

    def _subscription_gone(self, write: Delete, asker: Link | None) -> int | None:
        session_id, number = write.key
        assert isinstance(session_id, bytes)
        assert isinstance(number, int)
        if session_id in self._discarded:
            return None
        held = self._by_id(session_id)
        if held is None:
            return None
        row = held.subscriptions.pop(number, None)
        if row is None:
            return None
        left = (session_id, number) in self.unsubscribes or self._is_over(held)
        if row.group_id in self._groups and not left:
            raise Violation("S18", f"nobody left {row}, and its group is there")
        if asker is not None and asker is not held.connection:
            raise Violation("S9", f"{asker.name} is not the newest connection: {row} removed")
        return row.group_id

    def _newest(self, session_id: bytes, asker: Link | None, row: SubscriptionRow) -> _Session:
        held = self._by_id(session_id)
        if held is None:
            raise Violation("S9", f"the session of {row} is not there")
        if asker is not held.connection:
            who = "nobody" if asker is None else asker.name
            raise Violation("S9", f"{who} is not the newest connection: {row}")
        return held

    def _by_id(self, session_id: bytes) -> _Session | None:
        found = (each for each in self._sessions.values() if each.row.session_id == session_id)
        return next(found, None)

    def _group_put(self, row: GroupRow, asker: Link | None) -> None:
        self._groups[row.group_id] = row
        key = (row.name, row.filter)
        if asker is not None and key in self._tombstones:
            raise Violation("I18", f"{asker.name} brings a destroyed group back: {row}")
        self._tombstones.discard(key)

    def _check_used(self, group: GroupRow) -> None:
        """A private group is created together with the row of its subscription."""
        if group.kind != EXCLUSIVE:
            return
        assert group.session_id is not None
        held = self._by_id(group.session_id)
        rows = () if held is None else held.subscriptions.values()
        if all(row.group_id != group.group_id for row in rows):
            raise Violation("S18", f"no subscription has it: {group}")

    def _check_gone(self, group_id: int | None) -> None:
        """A private group is removed together with the row of its subscription, or before it."""
        group = None if group_id is None else self._groups.get(group_id)
        if group is not None and group.kind == EXCLUSIVE:
            raise Violation("S18", f"its subscription went without it: {group}")

    def _group_gone(self, write: Delete) -> None:
        group = self._groups.pop(int(write.key[0]), None)
        if group is None or group.group_id in self.removals:
            return
        if group.kind != EXCLUSIVE:
            raise Violation("S18", f"no operator removed {group}")
        assert group.session_id is not None
        held = self._by_id(group.session_id)
        if held is None:
            return
        for number, row in held.subscriptions.items():
            left = (group.session_id, number) in self.unsubscribes
            if row.group_id == group.group_id and not left and not self._is_over(held):
                raise Violation("S18", f"{row} of a session that lives needs {group}")

    def _is_over(self, held: _Session) -> bool:
        """Whether the session may be in the middle of its end: what it owns is removed first."""
        since_us = self._left_us(held)
        if since_us is None:
            return False
        stay_ms = max(held.row.expiry_ms, GRACE_MS)
        if held.connection is None:
            stay_ms = GRACE_MS
        return self._timeline.now_us - since_us >= (stay_ms - ROUNDING_MS) * 1_000

    # Words

    def opened(self, connection: Link, item: sessions_pb2.Opened) -> None:
        """A client was told that its session is open."""
        expected = self._expected.get(connection)
        if expected is None:
            raise Violation("S9", f"{connection.name} has a session that is not stored: {item}")
        row = expected.row
        if (item.session_id, item.session_epoch) != (row.session_id, row.session_epoch):
            raise Violation("S9", f"{connection.name}: {row} is stored, not {item}")
        if item.session_present != expected.present:
            raise Violation("S13", f"{connection.name}: present is {expected.present}, not {item}")
        if expected.present:
            self._check_subscriptions(connection, expected)

    def _check_subscriptions(self, connection: Link, expected: _Expected) -> None:
        client = connection.client
        session_id = expected.row.session_id
        if session_id != client.session_id:
            return  # the client never heard of it: its answer was lost
        lost = [
            number
            for number in client.sure - expected.groups.keys()
            if self.group_ids[session_id, number] in self._groups
        ]
        more = [
            number
            for number, group_id in expected.groups.items()
            if number not in client.asked and group_id in self._groups
        ]
        if lost or more:
            raise Violation("S15", f"{connection.name} lost {lost} and never asked for {more}")

    def refused(self, connection: Link, item: sessions_pb2.SessionError) -> None:
        """A client was told of an error."""
        match item.error.code:
            case PermissionDenied.code:
                self._denied(connection)
            case SessionNotFound.code:
                self._not_found(connection)
            case TooManySessions.code if not connection.session_id:
                self._turned_away(connection)
            case SessionTakenOver.code:
                self._taken_over(connection)
            case NotSubscribed.code:
                if connection.unsubscribed.get(item.subscription, False):
                    self._check_left(connection, item.subscription)

    def _denied(self, connection: Link) -> None:
        held = self._known_since(connection)
        if held is not None and held.row.principal == connection.principal:
            raise Violation("S16", f"{connection.name} is the owner of {held.row}")

    def _not_found(self, connection: Link) -> None:
        held = self._known_since(connection)
        if held is not None:
            raise Violation("S13", f"{connection.name}: {held.row} is there")

    def _taken_over(self, connection: Link) -> None:
        held = self._sessions.get(connection.client.name)
        if held is not None and held.connection is connection:
            raise Violation("F11", f"{connection.name} is the newest: {held.row}")
        if connection.session_id or connection in self._expected:
            return
        wanted = connection.opening.session_id
        if wanted not in self._discarded:
            raise Violation("F11", f"{connection.name} wants {wanted.hex()}, which is there")
        if held is None and self._gone_us.get(connection.client.name, 0) < connection.begun_us:
            raise Violation("F11", f"{connection.name}: nobody else has its client id")

    def _known_since(self, connection: Link) -> _Session | None:
        """The session of the client, if it has existed since the connection began."""
        held = self._sessions.get(connection.client.name)
        return held if held is not None and held.since_us < connection.begun_us else None

    def _turned_away(self, connection: Link) -> None:
        most = len(self._sessions) + self._lives.coming()
        if self._full_us < connection.begun_us and most < self._max:
            raise Violation("F12", f"{connection.name} is refused, and there is room")

    def _check_left(self, connection: Link, number: int) -> None:
        group_id = self.group_ids[connection.session_id, number]
        if group_id in self._groups:
            raise Violation("S15", f"{connection.name} had {number}, and was told that it has not")

    # The end

    def check_newest(self, connection: Link) -> None:
        """A while after a connection was opened: no older one of its client is served."""
        for older in connection.client.connections:
            if older is connection:
                break
            if older.is_live and older.session_id:
                raise Violation("F11", f"{older.name} lives on beside {connection.name}")

    def check_left(self, connection: Link) -> None:
        """A while after a client left: the store says so."""
        held = self._sessions.get(connection.client.name)
        if held is None or held.connection is not connection:
            return
        if held.row.disconnected_at_ms is None:
            raise Violation("S17", f"{connection.name} is gone, and counts as connected")

    @property
    def live(self) -> dict[bytes, SessionRow]:
        """The sessions that are stored, by id."""
        return {held.row.session_id: held.row for held in self._sessions.values()}
