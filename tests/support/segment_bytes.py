"""The bytes of segment files that nobody has open: where their frames begin, and bits that rot."""

from pathlib import Path

from dss_core.frame import headers_of
from dssd.log.segment.file import HEADER_BYTES


def frame_places(path: Path) -> list[int]:
    """Where the frames of a whole file begin."""
    return [HEADER_BYTES + at for at, _ in headers_of(path.read_bytes()[HEADER_BYTES:])]


def flip(path: Path, position: int, bit: int = 0) -> None:
    """Turn one bit of a file round."""
    content = bytearray(path.read_bytes())
    content[position] ^= 1 << bit
    path.write_bytes(content)
