"""The options of a subscription; apart from the subscription, which hands out records."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from dss_client._start_point import Start
from dss_core.filters import SubscriptionFilter
from dss_core.shards import Shard


@dataclass(frozen=True, slots=True)
class GrantNotice:
    """A stream was lent to a subscription, or taken back."""

    stream: str
    """As TOPIC/ORDINAL/PARTITION."""
    grant_epoch: int
    floor: int
    """Every record below it is acknowledged."""


ToldShards = Callable[[tuple[Shard, ...], int], None]
"""The shard and its epoch."""


@dataclass(frozen=True, slots=True)
class SubscriptionOptions:
    """What a subscription was asked to be."""

    filter: str
    shared: bool
    """It shares a group, instead of being private to the session."""
    start: Start = None
    ack_wait: float | None = None
    on_grant: Callable[[GrantNotice], None] | None = None
    on_revoke: Callable[[GrantNotice], None] | None = None
    on_assigned: ToldShards | None = None
    on_lost: Callable[[tuple[Shard, ...]], None] | None = None

    @property
    def by_shard(self) -> bool:
        """Whether the program keeps state by shard."""
        return self.on_assigned is not None or self.on_lost is not None

    @classmethod
    def of(cls, filter: str, **given: Any) -> Self:  # noqa: ANN401 -- as its fields
        """The options from the arguments of `Client.subscribe`.

        Raises:
            IllegalFilter, QueueWithoutGroup, IllegalName: the filter breaks a rule.
        """
        parsed = SubscriptionFilter.parse(filter)
        return cls(parsed.text, parsed.group is not None, **given)
