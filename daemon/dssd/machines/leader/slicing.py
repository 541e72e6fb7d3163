"""How the streams of a group are cut into shards, as its leader is told.

Invariant: a value; with the same partitions it says the same of a stream for ever.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from dss_core.ids import StreamId
from dss_core.shards import Shard, shard_of


@dataclass(frozen=True, slots=True)
class Slicing:
    """Into so many shards; None in its place: streams are shared out one by one."""

    of: int
    partitions: Mapping[int, int]
    """How many each storage topic has that the group reads, by its id."""

    def number_of(self, stream: StreamId) -> int:
        """The number of the shard that has a stream: as `shard_of`, for a whole group at a time."""
        return shard_of(stream[1], self.partitions[stream[0]], self.of)

    def shard_of(self, stream: StreamId, of: int | None = None) -> Shard:
        """Whose a stream is; with ``of``, of so many shards."""
        of = of or self.of
        return Shard(shard_of(stream.partition, self.partitions[stream.storage_topic_id], of), of)
