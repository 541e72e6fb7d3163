"""Which records a client that vanished may have died of.

Invariant: no record is charged while its group is paused. This module does not know what becomes of
the charges.
"""

from collections.abc import Callable, Iterator, Sequence

from dssd.machines.delivery.outstanding import SentRange
from dssd.machines.delivery.stream import DeliveredStream


def left_in_doubt(
    streams: Sequence[DeliveredStream], is_paused: Callable[[DeliveredStream], bool], now_ms: int
) -> Iterator[tuple[DeliveredStream, list[SentRange]]]:
    """Charge what was out of each stream of the client; returns it by stream."""
    alone = sum(stream.records.out.records for stream in streams) == 1
    suspects = [stream for stream in streams if stream.records.suspect_out]
    for stream in streams:
        if not is_paused(stream):
            blamed = suspects == [stream]
            yield stream, stream.records.end_vanished(now_ms, alone=alone, blamed=blamed)
