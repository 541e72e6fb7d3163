"""The state of a leader about shards.

`sharding` has the rules that change it; `state` holds it, hence this module. Invariant: where there
is a slicing, `lanes` has every stream of the group once.
"""

from collections import Counter

from dss_core.ids import StreamId
from dss_core.shards import Shard
from dssd.machines.leader.slicing import Slicing


class Shards:
    """The shards of one group."""

    __slots__ = ("apart", "former", "given", "lanes", "slicing", "waiting")

    def __init__(self) -> None:
        self.slicing: Slicing | None = None
        """The shards by which streams are shared out; None: each by itself."""
        self.lanes: dict[int, list[StreamId]] = {}
        """The streams of each shard."""
        self.former: Counter[Shard] = Counter()
        """By former shard: how many streams are still held as parts of it."""
        self.apart = False
        """A member waits for a stream until others of its shard are let go."""
        self.given = 0
        """How often this leader lent a member the first stream of a shard."""
        self.waiting: set[int] = set()
        """Operations that wait until every shard is with its owner."""
