"""The heap of the process as glibc sees it: how much of it is in use, and giving back what is free.

gRPC does not say how much memory it holds for messages in transit, but it allocates that memory
from this heap; so does Python for objects larger than its own small blocks. With another C library
the figures are unknown and nothing is given back.
"""

import ctypes
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_STATM = Path("/proc/self/statm")
_RESIDENT_FIELD = 1


@dataclass(frozen=True, slots=True)
class HeapFigures:
    """How the heap stands, in all its arenas."""

    in_use_bytes: int
    free_bytes: int
    """Taken from the system and not given back."""


class _Figures(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks"),
            *("uordblks", "fordblks", "keepcost"),
        )
    )


@cache
def _library() -> ctypes.CDLL | None:
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallinfo2") or not hasattr(library, "malloc_trim"):
        return None
    library.mallinfo2.restype = _Figures
    return library


def figures() -> HeapFigures | None:
    """How the heap stands; None where nobody knows. It walks the free blocks: some milliseconds."""
    library = _library()
    if library is None:
        return None
    found = library.mallinfo2()
    # Blocks from the arenas, and large blocks with a mapping of their own.
    return HeapFigures(found.uordblks + found.hblkhd, found.fordblks)


def give_back() -> None:
    """Give free pages back to the system; a quarter of a second for each gigabyte of them."""
    library = _library()
    if library is not None:
        library.malloc_trim(0)


def resident_bytes(page_bytes: int) -> int:
    """What the process takes of the machine's memory; cheap to ask, and never less than the heap
    has in use."""
    return int(_STATM.read_text().split()[_RESIDENT_FIELD]) * page_bytes
