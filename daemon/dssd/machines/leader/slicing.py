"""How the streams of a group are cut into shards.

Invariant: a value; with the same partitions, a stream is always in the same shard.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dss_core.ids import StreamId
from dss_core.shards import Shard, shard_of, shards_by_partition


@dataclass(frozen=True, slots=True)
class Slicing:
    """A number of shards. None instead of a slicing: streams are shared out one by one."""

    of: int
    partitions: Mapping[int, int]
    """The number of partitions of each storage topic that the group reads, by its id."""

    def lanes_of(self, streams: Iterable[StreamId]) -> dict[int, list[StreamId]]:
        """The streams of each shard, in order; shards without streams are left out."""
        tables = {
            part: shards_by_partition(count, self.of) for part, count in self.partitions.items()
        }
        lanes: dict[int, list[StreamId]] = {}
        for stream in streams:
            number = tables[stream[0]][stream[1]]
            lane = lanes.get(number)
            if lane is None:
                lanes[number] = [stream]
            else:
                lane.append(stream)
        return lanes

    def shard_of(self, stream: StreamId, of: int | None = None) -> Shard:
        """The shard of a stream; with ``of``, among that many shards."""
        of = of or self.of
        return Shard(shard_of(stream.partition, self.partitions[stream.storage_topic_id], of), of)
