"""One connection of a client: one call of Attach, and what it receives on it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from dss_api.v1 import sessions_pb2
from dss_sim.groups.history import Event
from dss_sim.sessions.call import Call
from dss_sim.sessions.consumer import Consumer, Up
from dss_sim.sessions.timeline import Timeline
from dssd.rpc.principal import principal_of

if TYPE_CHECKING:
    from dss_sim.sessions.client import Client


class Surroundings(Protocol):
    """The part of the world that a client uses."""

    timeline: Timeline

    def connected(self, connection: "Link") -> Call | None:
        """Begin a call to the daemon; None if none listens."""

    def cut(self, connection: "Link", noticed_us: int) -> None:
        """A client vanishes without a word; the daemon's transport learns it later."""

    def left(self, connection: "Link") -> None:
        """A client leaves; the daemon may not know yet."""

    def tell(self, event: Event) -> None:
        """Report something that everybody can see."""

    def opened(self, connection: "Link", item: sessions_pb2.Opened) -> None:
        """A connection has its session."""

    def refused(self, connection: "Link", item: sessions_pb2.SessionError) -> None:
        """A connection was told of an error."""

    def closed(self, connection: "Link") -> None:
        """The daemon ended a connection that the client did not leave."""

    def unsubscribes(self, session_id: bytes, subscription: int) -> None:
        """A client asks to leave a subscription."""

    def group_of(self, session_id: bytes, subscription: int) -> str:
        """The group of a subscription."""


class Owner(Protocol):
    """The owner of a connection, as the judges know it."""

    name: str
    """The client id."""
    session_id: bytes
    """The id of the newest session that it was told of."""
    sure: set[int]
    """Subscriptions that the daemon confirmed in this session and that nobody has asked to end
    since."""
    asked: set[int]
    """Subscriptions that this session may have."""

    @property
    def connections(self) -> "Sequence[Link]":
        """All connections so far, the newest last."""


class Link(ABC):
    """The client's side of one call of Attach; subclasses handle what it receives."""

    def __init__(
        self,
        client: Owner,
        world: Surroundings,
        name: str,
        opening: sessions_pb2.Open,
        *,
        local: bool,
    ) -> None:
        self.client = client
        self.world = world
        self.name = name
        self.opening = opening
        self.local = local
        self.begun_us = world.timeline.now_us
        self.left_us: int | None = None
        """When the client left it, or was cut off."""
        self.session_id = b""
        self.answered = False
        self.told = ""
        """The code of the error that ended it."""
        self.call: Call | None = None
        self.groups: dict[int, str] = {}
        """Its subscriptions, by number: the group as the history names it."""
        self.unsubscribed: dict[int, bool] = {}
        """The numbers of subscriptions that it left, and whether the session surely had them."""

    @property
    def over_us(self) -> int | None:
        """When the daemon ended it."""
        return None if self.call is None else self.call.over_us

    @property
    def principal(self) -> str:
        """The principal, as the daemon learns it from the transport."""
        assert self.call is not None
        return str(principal_of(self.call))

    @property
    def is_live(self) -> bool:
        """Whether the client can use it."""
        return self.call is not None and not self.call.is_cut and self.left_us is None

    def say(self, message: Up) -> None:
        """Send a message to the daemon."""
        if self.call is not None and self.left_us is None:
            self.call.up(message)

    def leave(self, *, politely: bool) -> None:
        """Go away: half-closing the call, or without a word."""
        if self.left_us is None:
            self.left_us = self.world.timeline.now_us
            self.world.left(self)
        assert self.call is not None
        if politely:
            self.call.finish()
        else:
            self.call.cut()

    @abstractmethod
    def take(self, message: sessions_pb2.SessionDown) -> None:
        """Take a message of the daemon."""

    @abstractmethod
    def ended(self) -> None:
        """The daemon ended the call, or is gone."""


class Connection(Link):
    """The call of a client that the world plays itself."""

    client: "Client"

    def __init__(
        self, client: "Client", name: str, opening: sessions_pb2.Open, *, local: bool
    ) -> None:
        world = client.world
        super().__init__(client, world, name, opening, local=local)
        self.consumer = Consumer(
            self.name, client.habits, world.timeline, client.chance, say=self.say, tell=world.tell
        )

    def leave(self, *, politely: bool) -> None:
        """Go away: half-closing the call, or without a word."""
        super().leave(politely=politely)
        self.consumer.go()

    def take(self, message: sessions_pb2.SessionDown) -> None:
        """Take a message of the daemon."""
        if self.left_us is not None:
            return
        if message.HasField("error"):
            self._refused(message.error)
        elif message.WhichOneof("item") in ("opened", "subscribed", "unsubscribed"):
            self._of_session(message)
        else:
            self._of_records(message)

    def _of_session(self, message: sessions_pb2.SessionDown) -> None:
        match message.WhichOneof("item"):
            case "opened":
                self.answered = True
                self.session_id = message.opened.session_id
                self.client.world.opened(self, message.opened)
                self.client.opened(self, message.opened)
            case "subscribed":
                number = message.subscribed.subscription
                self.groups[number] = self.client.world.group_of(self.session_id, number)
                # What arrives late tells nothing about the newer connection's requests since.
                if not self.consumer.is_taken_over:
                    self.client.subscribed(self, number)
            case "unsubscribed":
                if not self.consumer.is_taken_over:
                    self.client.unsubscribed(message.unsubscribed.subscription)

    def _of_records(self, message: sessions_pb2.SessionDown) -> None:
        match message.WhichOneof("item"):
            case "granted":
                self._granted(message.granted)
            case "deliver":
                self.consumer.delivered(message.deliver)
            case "revoke":
                self.consumer.revoke(message.revoke)
            case "revoked":
                self.consumer.dropped(message.revoked.grant)
            case "settled":
                self.consumer.settled(message.settled.token)
            case "pong":
                self.consumer.pong(message.pong.token)
            case "pause_set":
                self.consumer.set_paused(message.pause_set)

    def _granted(self, item: sessions_pb2.Granted) -> None:
        group = self.groups.get(item.subscription)
        if group is None:
            self.say(Up(revoke_finished=sessions_pb2.RevokeFinished(grant=item.grant)))
        else:
            self.consumer.granted(item, group)

    def _refused(self, item: sessions_pb2.SessionError) -> None:
        self.client.world.refused(self, item)
        if item.grant:
            self.consumer.dropped(item.grant)
        elif item.subscription and self.consumer.is_taken_over:
            # As above: the newer one may have another session with a subscription of this number.
            self.consumer.left(item.subscription)
        elif item.subscription:
            self.client.refused(self, item)
        elif item.final:
            self.answered = True
            self.told = item.error.code

    def ended(self) -> None:
        """The daemon ended the call, or is gone."""
        self.consumer.go()
        if self.left_us is None:
            self.client.world.closed(self)
            self.client.lost(self)
