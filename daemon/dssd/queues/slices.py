"""Decoding wanted records of consecutive frames, some frames at a time.

Invariant: frames in which nothing is wanted are not decoded.
"""

from collections.abc import Iterator

from dss_core.decode import DecodedBatch, decode
from dss_core.frame import spans_of
from dss_core.progress import Range, Ranges, clipped, complement
from dssd.queues.limits import SLICE_BYTES


def decoded_slices(frames: bytes, wanted: Ranges) -> Iterator[tuple[DecodedBatch, int]]:
    """The wanted records, in order, each batch with the bytes of its frames.

    Raises:
        FrameCorrupt: a frame cannot be read.
    """
    starts, bases = spans_of(frames)
    for first, last in _runs(starts, bases, wanted):
        mask = complement(wanted, bases[first], bases[last])
        piece = frames[starts[first] : starts[last]]
        # Their checksums were checked when they were read from the log.
        yield decode(piece, mask, checksums=False), len(piece)


def _runs(starts: list[int], bases: list[int], wanted: Ranges) -> Iterator[Range]:
    """Frames that lie side by side and hold something that is wanted."""
    first, end = 0, len(starts) - 1
    for index in range(end):
        if not clipped(wanted, bases[index], bases[index + 1]):
            if first < index:
                yield first, index
            first = index + 1
        elif starts[index + 1] - starts[first] >= SLICE_BYTES:
            yield first, index + 1
            first = index + 1
    if first < end:
        yield first, end
