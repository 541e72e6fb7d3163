"""The shards that a subscription has, for a program that keeps state by shard.

A subscription has a shard from the first of its streams that is lent until the last one is given
back; meanwhile the daemon lends none of them to others. Invariant: every shard that was reported as
assigned is reported as lost once, before its last stream is given back.
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
    """The shard of a grant, as the daemon says it."""
    if not granted.shards:
        return None
    return HeldShard(Shard(granted.shard, granted.shards), granted.shard_epoch)


class HeldShards:
    """The shards of one subscription; `tell` calls the program's callbacks, if it gave any."""

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
        """A stream of the shard was lent."""
        if held is not None:
            self._streams[held.shard] += 1
            if self._streams[held.shard] == 1:
                self._tell(self._on_assigned, (held.shard,), held.epoch)

    def let_go(self, held: HeldShard | None) -> None:
        """A stream of the shard is about to be given back, or was taken."""
        if held is not None:
            self._streams[held.shard] -= 1
            if not self._streams[held.shard]:
                del self._streams[held.shard]
                self._tell(self._on_lost, (held.shard,))
