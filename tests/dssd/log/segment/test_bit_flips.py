"""Every bit of a sealed segment of 4 KiB, of its index, and of its producers' snapshot."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dss_core.frame import headers_of
from dssd.log.segment.file import HEADER_BYTES
from support.proof_share import share

Bench = Any
MakeFrame = Callable[..., bytes]
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


@pytest.mark.parametrize("byte_phase", share((0, 3), range(8)))
async def test_no_flipped_bit_gives_a_wrong_payload_or_hides_another_frame(
    bench: Bench, byte_phase: int
) -> None:
    path, expected, places = await sealed(bench)
    content = path.read_bytes()
    with path.open("r+b", buffering=0) as file:
        for number, position in enumerate(range(byte_phase, len(content), share(40, 8))):
            hit = {n for n, (start, end) in enumerate(places) if start <= position < end}
            for bit in share((number % 8,), range(8)):
                os.pwrite(file.fileno(), bytes([content[position] ^ (1 << bit)]), position)
                found = await bench.payloads()
                assert found == {n: text for n, text in expected.items() if n not in hit}
                lost = {n for low, high in await bench.damaged() for n in range(low, high)}
                assert lost == hit
            os.pwrite(file.fileno(), content[position : position + 1], position)


def flips_of(content: bytes) -> Iterator[bytes]:
    """The content with one bit flipped: every bit, or one bit of a byte at every few bytes."""
    for number, position in enumerate(range(0, len(content), share(5, 1))):
        for bit in share((number % 8,), range(8)):
            flipped = bytes([content[position] ^ 1 << bit])
            yield content[:position] + flipped + content[position + 1 :]


async def test_a_flipped_bit_of_the_index_is_noticed_and_repaired(bench: Bench) -> None:
    path, expected, _ = await sealed(bench)
    index = path.with_suffix(".idx")
    content = index.read_bytes()
    for flipped in flips_of(content):
        index.write_bytes(flipped)
        await bench.reopen()
        assert await bench.payloads() == expected
        assert bench.log.quarantined(), "it is reported"
        assert index.read_bytes() == content, "the same runs come from the same frames"


@pytest.mark.parametrize("crash", [True, False], ids=["killed", "closed"])
async def test_a_flipped_bit_of_the_snapshot_costs_no_producer_an_answer(
    bench: Bench, make_frame: MakeFrame, crash: bool
) -> None:
    sent: list[tuple[bytes, int]] = []
    for sequence in range(4):
        if sequence == 2:
            await bench.roll()
        built = make_frame(b"payload %d" % sequence, sequence=sequence)
        sent.append((built, (await bench.append(built)).base_offset))
    await bench.reopen(crash=crash)
    [snapshot] = bench.directory.glob("*.prod")
    content = snapshot.read_bytes()
    for flipped in flips_of(content):
        snapshot.write_bytes(flipped)
        await bench.reopen(crash=True)
        for built, offset in sent:
            again = await bench.append(built)
            assert (again.base_offset, again.repeated) == (offset, True)
        assert len(await bench.payloads()) == len(sent)
        await bench.crash()
        snapshot.write_bytes(content)
        await bench.open()


async def test_a_segment_cut_at_any_byte_gives_what_is_left(bench: Bench) -> None:
    path, expected, places = await sealed(bench)
    content = path.read_bytes()
    for size in range(len(content) - 1, HEADER_BYTES, -share(61, 1)):
        path.write_bytes(content[:size])
        whole = {n for n, (_, end) in enumerate(places) if end <= size}
        assert await bench.payloads() == {n: expected[n] for n in whole}
