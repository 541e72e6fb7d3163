"""What is left of a client that is gone without a word: which records it may have died of.

Invariant: nobody is charged in a pause, nor where somebody else ended the client. This module does
not know what becomes of the charges.
"""

from collections.abc import Callable, Iterator, Sequence

from dssd.machines.delivery.outstanding import SentRange
from dssd.machines.delivery.stream import DeliveredStream


def left_in_doubt(
    streams: Sequence[DeliveredStream], is_paused: Callable[[DeliveredStream], bool], now_ms: int
) -> Iterator[tuple[DeliveredStream, list[SentRange]]]:
    """What was out of each stream of the client; it is in doubt now."""
    alone = sum(stream.records.out.records for stream in streams) == 1
    suspects = [stream for stream in streams if stream.records.suspect_out]
    for stream in streams:
        if not is_paused(stream):
            blamed = suspects == [stream]
            yield stream, stream.records.end_vanished(now_ms, alone=alone, blamed=blamed)
