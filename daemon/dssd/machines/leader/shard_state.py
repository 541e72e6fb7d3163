"""What a leader keeps of shards.

Apart from `sharding`, whose rules change it, because `state` holds it. Invariant: `lanes` has every
stream of the group once, where there is a slicing.
"""

from collections import Counter

from dss_core.ids import StreamId
from dss_core.shards import Shard
from dssd.machines.leader.slicing import Slicing


class Shards:
    """Of one group."""

    __slots__ = ("apart", "former", "given", "lanes", "slicing", "waiting")

    def __init__(self) -> None:
        self.slicing: Slicing | None = None
        """The shards by which streams are shared out; None: each by itself."""
        self.lanes: dict[int, list[StreamId]] = {}
        """The streams of each shard."""
        self.former: Counter[Shard] = Counter()
        """Streams that are held as parts of shards that are none any more."""
        self.apart = False
        """Somebody is not lent a stream until others of its shard are let go."""
        self.given = 0
        """How often somebody was lent the first stream of a shard."""
        self.waiting: set[int] = set()
        """Operations that wait until every shard is where it is to be."""
