"""The ordering keys of the records that producers of a run send.

Invariant: a frame has the same keys however often it is sent; each of them routes to its stream.
"""

from collections import defaultdict

from dss_core.ids import StreamId
from dss_core.routing import Router
from dss_sim.groups.history import Key
from dss_sim.ordering_keys import OrderingKeys, keys_of_stream, partition_of_key, text_of
from dssd.topics.model import StorageTopic

PRODUCERS_APART = 101
"""The distance between the first keys of two producers, in frames."""


class RecordKeys:
    """The keys of one run."""

    def __init__(self, seed: int) -> None:
        self._drawn = OrderingKeys(seed)
        self._of_streams: dict[StreamId, tuple[Key, ...]] = {}

    def create(self, part: StorageTopic, router: Router) -> None:
        """Choose the keys of new streams."""
        for stream in part.streams():
            keys = keys_of_stream(stream.partition, part.partitions, part.factor, router)
            self._of_streams[stream] = tuple(text_of(key) for key in keys)

    def streams_of(self, storage_topic_id: int) -> tuple[StreamId, ...]:
        """The streams of a storage topic, even of a removed one."""
        found = (each for each in self._of_streams if each.storage_topic_id == storage_topic_id)
        return tuple(found)

    def of_frame(
        self, stream: StreamId, producer_id: bytes, content: int, records: int
    ) -> tuple[Key, ...]:
        """The keys of the records of a producer's frame."""
        number = int.from_bytes(producer_id) * PRODUCERS_APART + content
        return self._drawn.of_frame(self._of_streams[stream], number, records)


def routed(
    keys: tuple[Key, ...], part: StorageTopic, router: Router, content: int
) -> dict[int, tuple[Key, ...]]:
    """The keys of a frame, in order, by their partitions in a storage topic."""
    how = part.partitions, part.factor, router
    found: defaultdict[int, list[Key]] = defaultdict(list)
    for key in keys:
        at = content if key is None else partition_of_key(key.encode("latin-1"), *how)
        found[at % part.partitions].append(key)
    return {at: tuple(of) for at, of in found.items()}
