"""The frames that a run sends.

Invariant: no two frames have one body, all records of a frame belong to its partition, and neither
the size of a frame nor anything else but its bytes depends on the keys.
"""

from collections.abc import Sequence

from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.frame import read_header
from dss_core.ids import StreamId
from dss_core.limits import ROWS_LAYOUT_RECORDS_BELOW
from dss_core.producer_ids import NO_PRODUCER, new_producer_id
from dss_sim.log.acts import Sending
from dss_sim.log.ledger import ANONYMOUS, Frame
from dss_sim.log.rules import TOPIC_EPOCH
from dssd.log.port import Append

ARROW_PADDING_BYTES = 8


def append_of(frame: Frame) -> Append:
    """The append call's data for a frame."""
    return Append(frame.stream, frame.content, TOPIC_EPOCH, frame.durability)


def new_frame(
    number: int,
    stream: StreamId,
    sequence: int,
    sending: Sending,
    keys: Sequence[bytes | None],
    producer_id: bytes,
    durability: str = "sync",
) -> Frame:
    """A frame with its number in every payload; a key replaces as many bytes of the payload as it
    has."""
    keys = _of_one_size(keys)
    texts = [f"{number}.{at}".ljust(sending.length, ".") for at in range(sending.records)]
    payloads = [
        text.encode()[: len(text) - len(key or b"")] for text, key in zip(texts, keys, strict=True)
    ]
    columns = Columns(payloads, keys, "t", None, 1)
    content = build_frame(
        columns,
        partition=stream.partition,
        producer_id=producer_id,
        sequence=0 if sending.producer == ANONYMOUS else sequence,
    )
    producer, records = sending.producer, sending.records
    return Frame(number, stream, producer, sequence, records, content, keys, durability)


def _of_one_size(keys: Sequence[bytes | None]) -> tuple[bytes | None, ...]:
    """The keys, fewer in a frame of the Arrow layout: that one pads keys and payloads apart.

    So the number of its one-byte keys is a multiple of 8. At least one record has no key, because
    without absent values Arrow leaves out the validity bitmaps.
    """
    if len(keys) < ROWS_LAYOUT_RECORDS_BELOW:
        return tuple(keys)
    kept = list(keys)
    kept[-1] = None
    filled = [row for row, key in enumerate(kept) if key]
    for row in filled[len(filled) // ARROW_PADDING_BYTES * ARROW_PADDING_BYTES :]:
        kept[row] = None
    return tuple(kept)


def id_of(producer: int, began_us: int) -> bytes:
    """The id of a producer that begins now; zeros if there is no producer."""
    if producer == ANONYMOUS:
        return NO_PRODUCER
    return new_producer_id(began_us)[:8] + producer.to_bytes(8)


def id_in(frame: Frame) -> bytes:
    """The id of the producer of a frame."""
    return read_header(frame.content).producer_id
