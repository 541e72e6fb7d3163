"""The ordering keys of the records that producers of a run send.

Invariant: a frame has the same keys however often it is sent; each of them routes to its stream.
"""

from dss_core.ids import StreamId
from dss_sim.groups.history import Key
from dss_sim.ordering_keys import OrderingKeys, keys_of_stream, text_of
from dssd.topics.model import StorageTopic

PRODUCERS_APART = 101
"""How far apart the keys of two producers begin, in frames."""


class RecordKeys:
    """Those of one run."""

    def __init__(self, seed: int) -> None:
        self._drawn = OrderingKeys(seed)
        self._of_streams: dict[StreamId, tuple[Key, ...]] = {}

    def create(self, part: StorageTopic) -> None:
        """Choose the keys of streams that are born."""
        for stream in part.streams():
            keys = keys_of_stream(stream.partition, part.partitions)
            self._of_streams[stream] = tuple(text_of(key) for key in keys)

    def of_frame(
        self, stream: StreamId, producer_id: bytes, content: int, records: int
    ) -> tuple[Key, ...]:
        """The keys of the records of a producer's frame."""
        number = int.from_bytes(producer_id) * PRODUCERS_APART + content
        return self._drawn.of_frame(self._of_streams[stream], number, records)
