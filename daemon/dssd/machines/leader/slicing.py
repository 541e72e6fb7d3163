"""How the streams of a group are cut into shards, as its leader is told.

Invariant: a value; with the same partitions it says the same of a stream for ever.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dss_core.ids import StreamId
from dss_core.shards import Shard, shard_of, shards_by_partition


@dataclass(frozen=True, slots=True)
class Slicing:
    """Into so many shards; None in its place: streams are shared out one by one."""

    of: int
    partitions: Mapping[int, int]
    """How many each storage topic has that the group reads, by its id."""

    def lanes_of(self, streams: Iterable[StreamId]) -> dict[int, list[StreamId]]:
        """The streams of each shard that has one, in their order."""
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
        """Whose a stream is; with ``of``, of so many shards."""
        of = of or self.of
        return Shard(shard_of(stream.partition, self.partitions[stream.storage_topic_id], of), of)
