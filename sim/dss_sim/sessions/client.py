"""A client under one client id: when it connects, what it wants, and what it knows of its session.

Its connections come one after the other, or overlap: the newest counts, and an older one goes on
sending until it is told why it ended. A connection that names the session is of the same process,
which no longer uses the older one; any other is of another process, and the older one goes on
without knowing of it. It reconnects by itself when a daemon went away, as the client library does,
and repeats what was not answered.

Invariant: `Client.sure` has the subscriptions that the daemon confirmed in this session and that
nobody has asked to end since.
"""

from random import Random

from dss_api.v1 import sessions_pb2, types_pb2
from dss_core.errors import GroupDestroyed, NotSubscribed, SessionNotFound, SessionTakenOver
from dss_core.limits import CREDIT_RECORDS
from dss_sim.sessions.connection import Connection, Surroundings
from dss_sim.sessions.consumer import Up
from dss_sim.sessions.plan import ClientPlan, Habits

NOTICED_US = (0, 5_000_000)
"""How long until the transport knows that a client vanished."""
BACK_US = (20_000, 1_500_000)
LOST = (SessionNotFound.code, SessionTakenOver.code)
"""Errors that tell it that it cannot have its session again."""
AGAIN_US = (100_000, 600_000)
"""How long until a refused request is repeated."""


class Client:
    """One client id and what its owner wants."""

    def __init__(self, world: Surroundings, name: str, plan: ClientPlan, chance: Random) -> None:
        self.world = world
        self.name = name
        self.plan = plan
        self.habits = plan.habits
        self.chance = chance
        self.wanted: set[int] = set()
        """Numbers in the menu of the subscriptions that it wants."""
        self.leaving: set[int] = set()
        """Subscriptions that it asked to end, without an answer so far."""
        self.sure: set[int] = set()
        """Subscriptions that the daemon confirmed in this session."""
        self.asked: set[int] = set()
        """Subscriptions that this session may have."""
        self.session_id = b""
        self.credit_records = CREDIT_RECORDS
        self.staying = False
        self.newest: Connection | None = None
        self.connections: list[Connection] = []

    @property
    def is_settled(self) -> bool:
        """Whether it is connected, and has exactly what it wants."""
        newest = self.newest
        if newest is None or not newest.is_live or not newest.session_id:
            return False
        return not self.leaving and self.wanted == set(newest.groups) & self.sure

    def live(self) -> list[Connection]:
        """Its connections that it can use, the newest last."""
        return [connection for connection in self.connections if connection.is_live]

    def described(self) -> str:
        """For people."""
        newest = self.newest
        groups = None if newest is None or not newest.is_live else newest.groups
        return f"{self.name} wants {self.wanted}, leaves {self.leaving}, has {groups}"

    def begin(self) -> None:
        """Connect, and choose what it wants."""
        self.wanted |= set(range(1, self.plan.begins + 1))
        self.connect()

    def connect(self, *, clean: bool = False, anew: bool = False) -> Connection | None:
        """Attach, and take over the present connection, if there is one. Anew: by another
        process."""
        self.staying = True
        by_id = self.plan.by_id and not (clean or anew)
        opening = sessions_pb2.Open(
            client_id=self.name,
            clean_start=clean or not self.connections,
            session_id=self.session_id if by_id else b"",
            session_expiry_s=self.plan.expiry_s,
            credit_records=self.credit_records,
        )
        name = f"{self.name}.{len(self.connections) + 1}"
        connection = Connection(self, name, opening, local=self.plan.local)
        connection.call = self.world.connected(connection)
        if connection.call is None:
            self._back_later()
            return None
        for older in self.live():
            if opening.session_id:
                older.consumer.rest()
            if older.session_id:
                self._ask_more(older)
        self.newest = connection
        self.connections.append(connection)
        connection.say(Up(open=opening))
        return connection

    def leave(self) -> None:
        """Go away for good."""
        self.staying = False
        self.wanted.clear()
        self.leaving.clear()
        for connection in self.live():
            if self.chance.random() < 0.5:
                connection.leave(politely=True)
            else:
                self.world.cut(connection, self.chance.randint(*NOTICED_US))

    def subscribe(self, number: int) -> None:
        """Want a subscription of the menu, unless it is just leaving that."""
        if number in self.leaving:
            return
        self.wanted.add(number)
        if self.newest is not None and self.newest.session_id:
            self._ask(self.newest)

    def unsubscribe(self, number: int) -> None:
        """Leave a subscription."""
        if number not in self.wanted:
            return
        self.wanted.discard(number)
        self.leaving.add(number)
        if self.newest is not None and self.newest.session_id:
            self._ask(self.newest)

    def behave(self) -> None:
        """From now on ack everything; reconnect if it stays."""
        self.habits = Habits(sync=self.habits.sync)
        for connection in self.live():
            connection.consumer.behave()
        if self.staying and not (self.newest and self.newest.is_live):
            self.connect()

    # What its connections tell

    def opened(self, connection: Connection, item: sessions_pb2.Opened) -> None:
        """A connection has its session."""
        if not item.session_present or item.session_id != self.session_id:
            self.sure.clear()
            self.asked.clear()
            self.leaving.clear()
        self.session_id = item.session_id
        self.leaving |= self.asked - self.wanted
        for older in self.live():
            if older is connection:
                break
            older.consumer.taken_over()
        if connection is self.newest:
            self._ask(connection)

    def subscribed(self, connection: Connection, number: int) -> None:
        """A subscription is there."""
        if number not in self.wanted:
            self.leaving.add(number)
            self._ask(connection)
        elif connection.session_id == self.session_id:
            self.sure.add(number)

    def unsubscribed(self, number: int) -> None:
        """A subscription is gone."""
        self.leaving.discard(number)
        self.asked.discard(number)
        newest = self.newest
        if newest is not None:
            newest.groups.pop(number, None)
            newest.unsubscribed.pop(number, None)
            if number in self.wanted and newest.is_live and newest.session_id:
                self._ask(newest)

    def refused(self, connection: Connection, item: sessions_pb2.SessionError) -> None:
        """A request about a subscription failed, or the subscription has ended."""
        number, code = item.subscription, item.error.code
        connection.unsubscribed.pop(number, None)
        connection.consumer.left(number)
        if code == NotSubscribed.code:
            self.unsubscribed(number)
        elif code == GroupDestroyed.code:
            self.wanted.discard(number)
            self.sure.discard(number)
            self.unsubscribed(number)
        elif item.final:
            self.sure.discard(number)
            connection.groups.pop(number, None)
            self._ask_later(connection)
        else:
            self._ask_later(connection)

    def lost(self, connection: Connection) -> None:
        """The daemon ended a connection, or is gone."""
        if connection is not self.newest:
            return
        asked = connection.opening.session_id
        if asked == self.session_id and not connection.session_id and connection.told in LOST:
            # Or another process begins, if the answer to the earlier one was lost.
            self.session_id = b""
        before = self.live()
        if before and connection.told != SessionTakenOver.code:
            self.newest = before[-1]
            self.newest.consumer.wake()
            self._ask_later(self.newest)
        elif self.staying:
            self._back_later()

    def _back_later(self) -> None:
        self.world.timeline.after(self.chance.randint(*BACK_US), self._back)

    def _back(self) -> None:
        if self.staying and not (self.newest is not None and self.newest.is_live):
            self.connect()

    def _ask_later(self, connection: Connection) -> None:
        wait_us = self.chance.randint(*AGAIN_US)
        self.world.timeline.after(wait_us, lambda: self._ask_again(connection))

    def _ask_again(self, connection: Connection) -> None:
        if connection is self.newest and connection.is_live and connection.session_id:
            self._ask(connection)

    def _ask_more(self, connection: Connection) -> None:
        """Send a request on a connection while the next one begins."""
        number = self.chance.randint(1, len(self.plan.menu))
        if self.chance.random() < 0.3 and number in self.wanted:
            self.wanted.discard(number)
            self.leaving.add(number)
        elif number not in self.leaving:
            self.wanted.add(number)
        self._ask(connection)

    def _ask(self, connection: Connection) -> None:
        for number in sorted(self.leaving - set(connection.unsubscribed)):
            connection.unsubscribed[number] = number in self.sure
            self.sure.discard(number)
            connection.consumer.left(number)
            self.world.unsubscribes(connection.session_id, number)
            unsubscribe = sessions_pb2.Unsubscribe(subscription=number)
            connection.say(Up(unsubscribe=unsubscribe))
        for number in sorted(self.wanted - set(connection.groups)):
            self.asked.add(number)
            connection.say(Up(subscribe=self._subscribe(number)))

    def _subscribe(self, number: int) -> sessions_pb2.Subscribe:
        wanted = self.plan.menu[number - 1]
        subscribe = sessions_pb2.Subscribe(subscription=number, filter=wanted)
        if not wanted.startswith("$"):
            subscribe.start.CopyFrom(types_pb2.Start(earliest=True))
        return subscribe
