"""Which shards a subscription has, for a program that keeps state by shard.

A shard is had from the first of its streams that is lent until the last that is given back; the
daemon sees to it that nobody else is lent one meanwhile. Invariant: every shard that was told as
assigned is told as lost once, before its last stream is given back.
"""

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from dss_core.shards import Shard

if TYPE_CHECKING:
    from dss_api.v1 import sessions_pb2 as wire


class HeldShard(NamedTuple):
    """The shard of a lent stream, in a group that is assigned by shards."""

    shard: Shard
    epoch: int
    """The shard's epoch at this client; each later holder has a higher one."""


def held_shard(granted: "wire.Granted") -> HeldShard | None:
    """What the daemon says of it."""
    if not granted.shards:
        return None
    return HeldShard(Shard(granted.shard, granted.shards), granted.shard_epoch)


class HeldShards:
    """Of one subscription; `tell` calls what the program gave, where it gave something."""

    def __init__(
        self,
        tell: Callable[..., None],
        on_assigned: Callable[[tuple[Shard, ...], int], None] | None,
        on_lost: Callable[[tuple[Shard, ...]], None] | None,
    ) -> None:
        self._tell = tell
        self._on_assigned, self._on_lost = on_assigned, on_lost
        self._streams: Counter[Shard] = Counter()

    def add(self, held: HeldShard | None) -> None:
        """A stream of it was lent."""
        if held is not None:
            self._streams[held.shard] += 1
            if self._streams[held.shard] == 1:
                self._tell(self._on_assigned, (held.shard,), held.epoch)

    def let_go(self, held: HeldShard | None) -> None:
        """A stream of it is given back next, or was taken."""
        if held is not None:
            self._streams[held.shard] -= 1
            if not self._streams[held.shard]:
                del self._streams[held.shard]
                self._tell(self._on_lost, (held.shard,))
