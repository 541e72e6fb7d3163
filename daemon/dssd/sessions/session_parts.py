"""The parts of the daemon that a session uses."""

from collections.abc import Callable
from dataclasses import dataclass, field
from secrets import token_bytes

from dssd.clock import Clock
from dssd.events.teller import Teller, Unheard
from dssd.leaders.groups import Groups
from dssd.leaders.registry import Registry
from dssd.log.port import Log
from dssd.queues.writers import QueueWriters
from dssd.sessions.deliveries import Deliveries
from dssd.sessions.delivery_budget import DeliveryBudget
from dssd.sessions.refusal_pace import RefusalPace
from dssd.store.port import Store
from dssd.topics.catalogue import Catalogue


@dataclass(frozen=True, slots=True)
class Services:
    """The parts that all sessions share."""

    store: Store
    catalogue: Catalogue
    log: Log
    groups: Groups
    registry: Registry
    clock: Clock
    writers: QueueWriters
    """Append to the queues of groups, for all sessions."""
    random_bytes: Callable[[int], bytes] = token_bytes
    """Gives so many random bytes, for ids."""
    events: Teller = field(default_factory=Unheard)
    """Takes events for operators."""
    budget: DeliveryBudget = field(default_factory=DeliveryBudget)
    """The budget of bytes that wait for clients, for all sessions together."""
    refusals: RefusalPace = field(default_factory=RefusalPace)
    """Bounds the time of the loop for refusals, of all sessions together."""
    deliveries: Deliveries = field(default_factory=Deliveries)
    """Counts what goes to clients."""

    def __post_init__(self) -> None:
        """Count failures together with deliveries."""
        self.deliveries.failures = self.writers.failures
