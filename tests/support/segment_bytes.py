"""The bytes of segment files that nobody has open: where their frames begin, and bit rot."""

from pathlib import Path

from dss_core.frame import headers_of
from dssd.log.segment.file import HEADER_BYTES


def frame_places(path: Path) -> list[int]:
    """The positions of the frames in a whole file."""
    return [HEADER_BYTES + at for at, _ in headers_of(path.read_bytes()[HEADER_BYTES:])]


def flip(path: Path, position: int, bit: int = 0) -> None:
    """Flip one bit of a file."""
    content = bytearray(path.read_bytes())
    content[position] ^= 1 << bit
    path.write_bytes(content)
