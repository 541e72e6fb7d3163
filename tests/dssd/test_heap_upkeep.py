"""Memory that a rush took goes back to the system."""

import os

import pytest

from dssd import heap, heap_upkeep
from dssd.heap_upkeep import HeapUpkeep
from dssd.limits import MALLOC_MMAP_ABOVE_BYTES
from dssd.process import keep_large_blocks

MIB = 1 << 20
BLOCK = MALLOC_MMAP_ABOVE_BYTES // 4


def resident_bytes() -> int:
    return heap.resident_bytes(os.sysconf("SC_PAGESIZE"))


async def test_pages_that_are_free_at_two_looks_are_given_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keep_large_blocks()
    monkeypatch.setattr(heap_upkeep, "HEAP_KEPT_BYTES", 16 * MIB)
    upkeep = HeapUpkeep()
    before = resident_bytes()
    rush = [bytearray(BLOCK) for _ in range(96)]
    for block in rush:
        block[:] = b"x" * BLOCK
    last = rush[-1]
    del rush, block
    await upkeep.look()
    assert resident_bytes() > before + 64 * MIB
    await upkeep.look()
    assert resident_bytes() < before + 32 * MIB
    assert last
