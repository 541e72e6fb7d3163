"""Takes much memory as a daemon's rush does, frees nearly all of it, and looks at the heap twice.

Prints what the process takes, in MiB: before, after the first look, after the second.
"""

import asyncio
import resource
import sys

from dssd import heap
from dssd.heap_upkeep import HeapUpkeep
from dssd.process import MALLOC_MMAP_ABOVE_BYTES, keep_large_blocks

BLOCK = MALLOC_MMAP_ABOVE_BYTES // 4
BLOCKS = 160


def rush() -> bytearray:
    """Fill many blocks; the last one stays, and holds all below it."""
    blocks = [bytearray(b"x" * BLOCK) for _ in range(BLOCKS)]
    return blocks[-1]


def note_size() -> None:
    """Print what the process takes now."""
    sys.stdout.write(f"{heap.resident_bytes(resource.getpagesize()) >> 20}\n")


async def main() -> None:
    """Take, free, look."""
    keep_large_blocks()
    upkeep = HeapUpkeep()
    note_size()
    last = rush()
    for _ in range(2):
        await upkeep.look()
        note_size()
    assert last


if __name__ == "__main__":
    asyncio.run(main())
