"""The items that pass between a session and its client, as values; the servicer encodes them.

Invariant: in an item from a client (`Up`) only the types are checked; every number in it is
untrusted. An item for the client (`Down`) is complete; encoding adds nothing.
"""

from dataclasses import dataclass, field

from dss_core.errors import DssError
from dss_core.lane import METADATA, ORDERED, QUEUES
from dss_core.progress import Progress, Ranges
from dss_core.shards import Shard
from dssd.machines.delivery.events import AskBack, Deliver, Settles, TakeBack, TakenBack
from dssd.machines.start_point import StartPoint

FEATURES = frozenset({QUEUES, ORDERED, METADATA})
"""The features beyond the first version that a client may have, and this daemon supports."""


@dataclass(frozen=True, slots=True)
class Opening:
    """The client's first item."""

    client_id: str
    """The client id; if it is empty, the daemon chooses one."""
    clean_start: bool = True
    session_id: bytes = b""
    """Not empty: resume exactly this session."""
    expiry_s: int = 0
    credit_records: int | None = None
    credit_bytes: int | None = None
    takes_bundles: bool = False
    """Whether one item may have several deliveries."""
    principal: str = ""
    payer: str = ""
    """The owner whose sessions share a budget of bytes; empty: it shares with none."""
    peer: str = ""
    """Where it is connected from."""
    is_local: bool = True
    """It is connected by a unix socket, which the kernel closes exactly when the client ends."""
    features: frozenset[str] = frozenset()
    """The features that the client has beyond the first version."""


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Begin a subscription under a number that the client chose."""

    subscription: int
    filter: str
    start: StartPoint | None = None
    ack_wait_ms: int | None = None
    by_shard: bool = False
    """Its program keeps state by shard."""


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """Leave a subscription."""

    subscription: int


@dataclass(frozen=True, slots=True)
class FinishRevoke:
    """The client hands out no more of a grant and has settled what it could."""

    grant: int


@dataclass(frozen=True, slots=True)
class PingSent:
    """Asks for an answer."""

    token: int


@dataclass(frozen=True, slots=True)
class PauseTaken:
    """The client hands out nothing more, or hands out again, as it was asked."""

    subscription: int
    turn: int


Up = Subscribe | Unsubscribe | Settles | FinishRevoke | PingSent | PauseTaken | TakenBack


@dataclass(frozen=True, slots=True)
class Opened:
    """The session is there."""

    client_id: str
    session_id: bytes
    session_epoch: int
    session_present: bool
    lease_ms: int
    credit_records: int
    credit_bytes: int
    features: tuple[str, ...] = ()
    """The features that both the client and the daemon have."""
    incarnation: bytes = b""
    """The incarnation of the daemon's data."""


@dataclass(frozen=True, slots=True)
class Subscribed:
    """The subscription is there."""

    subscription: int
    group: str
    declared: bool


@dataclass(frozen=True, slots=True)
class UnsubscribedItem:
    """The subscription is gone."""

    subscription: int


@dataclass(frozen=True, slots=True)
class Granted:
    """A stream is lent to this session."""

    grant: int
    subscription: int
    stream: str
    grant_epoch: int
    progress: Progress
    storage_topic_id: int
    """The id of the stream; unlike its name it is never reused."""
    queues: bool = False
    """Whether it is lent with a retry queue and dead letters."""
    ordered: bool = False
    """Whether records of a key are handed out one at a time, in order."""
    shard: Shard | None = None
    """The shard that it is a part of, in a group that is shared out by shards."""
    shard_epoch: int = 0
    """As in `GrantedStream`."""


@dataclass(frozen=True, slots=True)
class Revoke:
    """Hand out no more of the grant."""

    grant: int
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class Revoked:
    """The grant is over."""

    grant: int
    reason: str


@dataclass(frozen=True, slots=True)
class Gone:
    """Refused records of a grant that are lost: they are not sent again."""

    grant: int
    """The number of the grant plus the level."""
    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Settled:
    """The acks under this token are durable."""

    token: int


@dataclass(frozen=True, slots=True)
class Status:
    """How a subscription stands."""

    subscription: int
    state: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PauseSet:
    """The group of a subscription was paused: hand out nothing new; or it was resumed."""

    subscription: int
    paused: bool
    turn: int
    """The client's answer names this number."""


@dataclass(frozen=True, slots=True)
class Refused:
    """An error, as an item."""

    error: DssError = field(compare=False)
    subscription: int = 0
    grant: int = 0
    final: bool = False


@dataclass(frozen=True, slots=True)
class PongSent:
    """Answers a ping."""

    token: int


@dataclass(frozen=True, slots=True)
class Bundle:
    """Deliveries that are written together, in this order."""

    deliveries: tuple[Deliver, ...]


Down = (
    Opened
    | Subscribed
    | UnsubscribedItem
    | Granted
    | Deliver
    | Bundle
    | Revoke
    | Revoked
    | Gone
    | TakeBack
    | AskBack
    | Settled
    | Status
    | PauseSet
    | Refused
    | PongSent
)
