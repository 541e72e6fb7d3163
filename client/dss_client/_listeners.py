"""Who is told what an Attach call reads: its session, and the subscriptions of that.

Invariant: the call knows no more of either than is said here.
"""

from typing import Protocol

from dss_api.v1 import sessions_pb2 as wire
from dss_client._grant import HeldGrant
from dss_client._handout import Handout, Handouts
from dss_client._ordered import Ordered
from dss_core.errors import DssError
from dss_core.progress import Ranges


class Taker(Protocol):
    """The subscription, as the call knows it: it takes grants and records."""

    handouts: Handouts
    """What its pieces are made of."""

    def handed_below(self, storage_topic_id: int, stream: str) -> int:
        """Offsets of the stream below it may have been handed out by this client."""

    def granted(self, grant: HeldGrant) -> None:
        """A stream was lent to it."""

    def deliver(self, handout: Handout) -> None:
        """Records came."""

    def refused(self, acks: int) -> None:
        """The daemon refused acks."""

    def stands(self, state: str) -> None:
        """The daemon says how it stands."""

    def set_paused(self, paused: bool) -> None:
        """From now on hand out nothing new, whichever way it is taken; or hand out again."""

    def stop(self, grant: HeldGrant) -> None:
        """Hand out no more of the grant."""

    def revoked(self, grant: HeldGrant) -> None:
        """A stream was taken back."""

    def ended(self, grant: HeldGrant) -> None:
        """A grant is over."""

    def note_current(self) -> None:
        """Bring the frontier of what is being handed out up to date."""

    def ordered(self) -> Ordered:
        """What keeps the order of keys, over all lent streams."""

    def bring_acks(self) -> None:
        """Have all acks that were given be known to their grants."""

    def taken_back(self, grant: HeldGrant, ranges: Ranges) -> None:
        """The daemon has moved these records to a queue; those still here are not handed out."""

    def asked_back(self, grant: HeldGrant, ranges: Ranges) -> bool:
        """The same, if the program has the first of these still, unsettled; whether it has."""


class Listener(Protocol):
    """The session, as the call knows it: it owns the subscriptions."""

    def subscription(self, number: int) -> Taker | None:
        """The subscription of the number, if it is still wanted."""

    def subscribed(self, item: wire.Subscribed) -> None:
        """The daemon took a subscription."""

    def acked(self, number: int) -> None:
        """A report with acks of the subscription is on its way."""

    def unsubscribed(self, number: int) -> None:
        """The daemon ended a subscription."""

    def refused(self, error: DssError, *, subscription: int, final: bool) -> None:
        """The daemon refused something that is not about one grant."""
