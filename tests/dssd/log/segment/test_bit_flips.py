"""Every bit of a sealed segment of 4 KiB, of its index, and of its producers' snapshot."""

import os
from pathlib import Path
from typing import Any

import pytest

from dss_core.frame import headers_of
from dssd.log.segment.file import HEADER_BYTES

Bench = Any
SEGMENT_BYTES = 4_096


async def sealed(bench: Bench) -> tuple[Path, dict[int, bytes], list[tuple[int, int]]]:
    """A sealed segment of 4 KiB: its path, its records, and the position of each one's frame."""
    number = 0
    while True:
        await bench.put(b"payload of record %04d" % number)
        number += 1
        (path,) = bench.segments()
        if path.stat().st_size > SEGMENT_BYTES - 200:
            break
    await bench.roll()
    path = bench.segments()[0]
    content = path.read_bytes()
    places = [
        (HEADER_BYTES + at, HEADER_BYTES + at + header.frame_bytes)
        for at, header in headers_of(content[HEADER_BYTES:])
    ]
    await bench.reopen()
    return path, {n: b"payload of record %04d" % n for n in range(number)}, places


@pytest.mark.parametrize("byte_phase", range(8))
async def test_no_flipped_bit_gives_a_wrong_payload_or_hides_another_frame(
    bench: Bench, byte_phase: int
) -> None:
    path, expected, places = await sealed(bench)
    content = path.read_bytes()
    with path.open("r+b", buffering=0) as file:
        for position in range(byte_phase, len(content), 8):
            hit = {n for n, (start, end) in enumerate(places) if start <= position < end}
            for bit in range(8):
                os.pwrite(file.fileno(), bytes([content[position] ^ (1 << bit)]), position)
                found = await bench.payloads()
                assert found == {n: text for n, text in expected.items() if n not in hit}
                lost = {n for low, high in await bench.damaged() for n in range(low, high)}
                assert lost == hit
            os.pwrite(file.fileno(), content[position : position + 1], position)


async def test_a_flipped_bit_of_the_index_is_noticed_and_repaired(bench: Bench) -> None:
    path, expected, _ = await sealed(bench)
    index = path.with_suffix(".idx")
    content = index.read_bytes()
    for position in range(0, len(content), 7):
        flipped = bytearray(content)
        flipped[position] ^= 1
        index.write_bytes(flipped)
        await bench.reopen()
        assert await bench.payloads() == expected
        assert bench.log.quarantined(), "it is reported"
        assert index.read_bytes() == content, "the same runs come from the same frames"


async def test_a_segment_cut_at_any_byte_gives_what_is_left(bench: Bench) -> None:
    path, expected, places = await sealed(bench)
    content = path.read_bytes()
    for size in range(len(content) - 1, HEADER_BYTES, -13):
        path.write_bytes(content[:size])
        whole = {n for n, (_, end) in enumerate(places) if end <= size}
        assert await bench.payloads() == {n: expected[n] for n in whole}
